"""A database with the schema and the shape of IMDB, as in the Join Order Benchmark: 21 generated tables.

Row counts are those of IMDB times the scale, except for small tables. Fan-outs follow a power law: films with
low numbers are popular, with many actors, keywords and companies, and popular people play in popular films.
There are correlations that a product of selectivities misses: popular films are newer, companies of a country
make films in its language, and people in some roles have certain notes. No row is copied from IMDB.

`skew` is what is left of the power law. With 1 a film has up to thousands of actors, and the last steps along
their chain in a join give chunks of a row or two; with 0 all films have about as many.
"""

from generated import write

#: IMDB's rows, in thousands; those of the small tables as they are.
ROWS = {
    "title": 2528, "cast_info": 36244, "movie_info": 14836, "movie_info_idx": 1380, "movie_companies": 2609, "movie_keyword": 4524,
    "name": 4167, "char_name": 3140, "aka_name": 901, "person_info": 2964, "company_name": 235, "keyword": 134, "movie_link": 30,
    "complete_cast": 135, "aka_title": 361,
}
KINDS = ["movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode"]
ROLES = ["actor", "actress", "producer", "writer", "cinematographer", "composer", "costume designer", "director", "editor", "miscellaneous crew", "production designer", "guest"]
LINKS = ["follows", "followed by", "remake of", "remade as", "references", "referenced in", "spoofs", "spoofed in", "features", "featured in", "spin off from", "spin off", "version of", "similar to", "edited into", "edited from", "alternate language version of", "unknown link"]
COUNTRIES = ["[us]", "[gb]", "[de]", "[fr]", "[jp]", "[it]", "[in]", "[ca]", "[es]", "[se]", "[dk]", "[nl]"]
LANGUAGES = ["English", "English", "German", "French", "Japanese", "Italian", "Hindi", "English", "Spanish", "Swedish", "Danish", "Dutch"]
GENRES = ["Drama", "Comedy", "Short", "Documentary", "Action", "Thriller", "Romance", "Horror", "Crime", "Family", "Sci-Fi", "Fantasy"]
INFOS = {1: "runtimes", 2: "color info", 3: "genres", 4: "languages", 8: "countries", 16: "release dates", 99: "votes distribution", 100: "votes", 101: "rating", 112: "top 250 rank", 113: "bottom 10 rank", 17: "trivia", 22: "birth notes", 37: "height", 18: "mini biography"}
NOTES = ["(voice)", "(uncredited)", "(producer)", "(executive producer)", "(writer)", "(co-production)", "(presents)", "(TV)"]


def u(salt, of="x"):
    """A pseudorandom number from 0 to 1."""
    return f"((hash({of} * 64 + {salt}) % 1000003) / 1000003.0)"


def skewed(rows, power, salt, of="x"):
    """A number from 1 to `rows`; low numbers are far more frequent."""
    return f"(1 + CAST(floor({rows} * pow({u(salt, of)}, {power})) AS BIGINT) % {rows})"


def pick(values, salt, of="x", power=1):
    listed = ", ".join(f"'{value}'" for value in values)
    return f"[{listed}][{skewed(len(values), power, salt, of)}]"


def tables(scale, skew=1.0):
    """The tables as queries, by name."""
    chosen = lambda rows, power, salt: skewed(rows, 1 + skew * (power - 1), salt)
    n = {name: max(20, int(thousands * 1000 * scale)) for name, thousands in ROWS.items()}
    film, person = n["title"], n["name"]
    numbered = lambda values: "SELECT * FROM (VALUES " + ", ".join(f"({i}, '{value}')" for i, value in values) + ") t"
    # The numbers of films of one country are equal modulo twelve, and so are those of its companies.
    of_country = f"((movie - 1) % {len(COUNTRIES)})"
    made = {
        "kind_type": numbered(enumerate(KINDS, 1)) + "(id, kind)",
        "role_type": numbered(enumerate(ROLES, 1)) + "(id, role)",
        "link_type": numbered(enumerate(LINKS, 1)) + "(id, link)",
        "company_type": numbered(enumerate(["distributors", "production companies", "special effects companies", "miscellaneous companies"], 1)) + "(id, kind)",
        "comp_cast_type": numbered(enumerate(["cast", "crew", "complete", "complete+verified"], 1)) + "(id, kind)",
        "info_type": numbered((i, INFOS.get(i, f"info {i}")) for i in range(1, 114)) + "(id, info)",
        "title": f"SELECT x AS id, 'Title ' || {pick(['of', 'and the', 'without', 'for', 'champion', 'murder'], 1)} || ' ' || hash(x) % 100000 AS title, CASE WHEN x < {film // 3} THEN 1 ELSE {skewed(7, 1, 2)} END AS kind_id, CAST(2015 - floor(90 * pow(x / {film}.0, 1.5) + 10 * {u(3)}) AS INTEGER) AS production_year, CASE WHEN {u(4)} < 0.5 THEN CAST({skewed(60, 2, 5)} AS INTEGER) END AS episode_nr",
        "name": f"SELECT x AS id, {pick(['Tim', 'Anna', 'Bert', 'Xavier', 'Yo', 'Angela', 'Zoe', 'Downey'], 6)} || ' ' || hash(x) % 1000000 AS name, CASE WHEN {u(7)} < 0.4 THEN 'm' WHEN {u(7)} < 0.7 THEN 'f' END AS gender, {pick(list('ABCDEFGHIJKLM'), 8)} || x % 100 AS name_pcode_cf",
        "char_name": f"SELECT x AS id, {pick(['Queen', 'King', 'Himself', 'Herself', 'Man', 'Doctor', 'Iron', 'Agent'], 9)} || ' ' || hash(x) % 100000 AS name",
        "company_name": f"SELECT x AS id, {pick(['Film', 'Warner', 'Pictures', 'Studio', 'Media', 'Polygram'], 10)} || ' ' || hash(x) % 10000 AS name, CASE WHEN {u(11)} < 0.95 THEN [{', '.join(repr(c) for c in COUNTRIES)}][(x - 1) % {len(COUNTRIES)} + 1] END AS country_code",
        "keyword": f"SELECT x AS id, CASE WHEN x <= 30 THEN {pick(['sequel', 'superhero', 'murder', 'based-on-novel', 'love', 'blood', 'revenge', 'character-name-in-title'], 0, 'x * 7')} || CASE WHEN x <= 8 THEN '' ELSE '-' || x END ELSE 'keyword-' || hash(x) % 1000000 END AS keyword",
        "movie_companies": f"SELECT x AS id, movie AS movie_id, LEAST({n['company_name']}, {of_country} + 1 + {len(COUNTRIES)} * ({chosen(max(1, n['company_name'] // len(COUNTRIES)), 3, 13)} - 1)) AS company_id, {skewed(4, 2, 14)} AS company_type_id, CASE WHEN {u(15)} < 0.5 THEN {pick(NOTES, 16)} || ' (' || 1950 + hash(x) % 65 || ')' END AS note FROM (SELECT x, {chosen(film, 1.6, 12)} AS movie FROM range(1, {n['movie_companies'] + 1}) r(x))",
        "movie_info": f"SELECT x AS id, movie AS movie_id, kind AS info_type_id, CASE kind WHEN 3 THEN {pick(GENRES, 19, power=1.5)} WHEN 4 THEN [{', '.join(repr(v) for v in LANGUAGES)}][{of_country} + 1] WHEN 8 THEN [{', '.join(repr(c) for c in COUNTRIES)}][{of_country} + 1] WHEN 16 THEN 'USA:' || (1 + hash(x) % 28) || ' ' || {pick(['January', 'April', 'August', 'October'], 20)} || ' ' || (1990 + hash(x * 3) % 25) ELSE 'text ' || hash(x) % 100000 END AS info, CASE WHEN {u(21)} < 0.2 THEN {pick(['internet', '(premiere)', 'worldwide'], 22)} END AS note FROM (SELECT x, {chosen(film, 1.4, 17)} AS movie, [3, 4, 8, 16, 1, 2, 17][{skewed(7, 1, 18)}] AS kind FROM range(1, {n['movie_info'] + 1}) r(x))",
        "movie_info_idx": f"SELECT x AS id, {chosen(film, 1.2, 23)} AS movie_id, [100, 101, 99, 112, 113][{skewed(5, 2.5, 24)}] AS info_type_id, CAST(CAST(1 + floor(90 * {u(25)}) AS INTEGER) / 10.0 AS VARCHAR) AS info",
        "cast_info": f"SELECT x AS id, GREATEST(1, LEAST({person}, CAST(floor({person} * pow({u(27)}, 1 + {1.5 * skew} * movie / {film}.0)) AS BIGINT))) AS person_id, movie AS movie_id, CASE WHEN role <= 2 THEN {chosen(n['char_name'], 2, 28)} END AS person_role_id, CASE WHEN role = 3 THEN {pick(NOTES[2:4], 29)} WHEN role = 4 THEN '(writer)' WHEN {u(30)} < 0.15 THEN {pick(NOTES[:2], 31)} END AS note, role AS role_id FROM (SELECT x, {chosen(film, 1.8, 26)} AS movie, {skewed(12, 1.7, 32)} AS role FROM range(1, {n['cast_info'] + 1}) r(x))",
        "aka_name": f"SELECT x AS id, {chosen(person, 1.5, 33)} AS person_id, 'aka ' || hash(x) % 1000000 AS name",
        "person_info": f"SELECT x AS id, {chosen(person, 1.7, 34)} AS person_id, [17, 18, 22, 37][{skewed(4, 1, 35)}] AS info_type_id, 'info ' || hash(x) % 10000 AS info, CASE WHEN {u(36)} < 0.1 THEN 'Volker Boehm' END AS note",
        "movie_keyword": f"SELECT x AS id, {chosen(film, 1.7, 37)} AS movie_id, {chosen(n['keyword'], 3, 38)} AS keyword_id",
        "movie_link": f"SELECT x AS id, {chosen(film, 2.5, 39)} AS movie_id, {chosen(film, 2.5, 40)} AS linked_movie_id, {skewed(18, 1.5, 41)} AS link_type_id",
        "complete_cast": f"SELECT x AS id, {chosen(film, 1.5, 42)} AS movie_id, {skewed(2, 1, 43)} AS subject_id, 2 + {skewed(2, 1, 44)} AS status_id",
        "aka_title": f"SELECT x AS id, {chosen(film, 1.5, 45)} AS movie_id, 'aka ' || hash(x) % 100000 AS title",
    }
    return {name: sql if "FROM" in sql else f"{sql} FROM range(1, {n[name] + 1}) r(x)" for name, sql in made.items()}


def generate(scale, out, skew=1.0):
    """Writes the tables as Parquet files, unless they are there."""
    return write(tables(scale, skew), out)
