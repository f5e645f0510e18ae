"""A table like `hits` of ClickBench: the visits of a web analytics service in July 2013. No row is copied.

It has 32 of the 105 columns: those of the 43 queries and a few beside them, so `SELECT *` reads less than
there. The shape follows the published table: a tenth of the counters have most hits, counter 62 among the
first; a page is seen by its popularity, and its text, address and counter belong together; one hit in eight
has a search phrase, one in twenty a phone's model, one in 150 an advertisement; there are about a sixth as
many users, and as many addresses, as hits. Texts are partly Cyrillic. Rows lie by counter, day, user and
time, as there.
"""

from generated import fraction, number, skewed, write

#: The user, and the addresses as hashes, that queries look for.
USER, REFERER_HASH, URL_HASH = 435090932899640449, 3594120000172545465, 2868770270353813622
DAY = 86_400
COUNTERS, REGIONS = 6_500, 9_000
WORDS = [
    "новости", "авто", "купить", "карта", "фильм", "погода", "работа", "сериал", "онлайн", "скачать",
    "отзывы", "форум", "Москва", "недвижимость", "игры", "рецепты", "video", "mail", "sport", "foto", "sale",
    "radio", "travel", "books",
]
HOSTS = ["auto", "novosti", "kinopoisk", "video", "market", "slovari", "pogoda", "forum", "foto", "rabota"]
PHONES = ["iPad", "iPhone", "N8-00", "Lumia", "GT-I9300", "Desire", "Xperia"]
WIDTHS = [1366, 1920, 1280, 1024, 1638, 1440, 1600, 1087, 768, 320, 0]
HEIGHTS = [768, 1080, 1024, 900, 800]


def chosen(values, place):
    """The value at a place, a number from 0, of a list of texts or numbers."""
    return f"[{', '.join(repr(value) for value in values)}][1 + {place}]"


def words(count, salts, of):
    """Words with a space between them: the same text for the same number `of`."""
    picked = (chosen(WORDS, number(len(WORDS), salt, of)) for salt in salts[:count])
    return " || ' ' || ".join(picked)


def constant(common, constant, salt, share):
    """`common`, but in a share of the rows the constant that queries look for."""
    return f"CASE WHEN {fraction(salt)} < {share} THEN {constant} ELSE {common} END"


def hits(rows):
    users, pages, phrases = max(1, rows // 5), max(1, rows // 4), max(1, rows // 15)
    # Pages have counters; low numbers of either are popular.
    basis = (
        f"SELECT x, {skewed(pages, 2.2, 1)} AS page, {skewed(users, 1.3, 2)} AS person,"
        f" {skewed(phrases, 1.8, 3)} AS phrase, {skewed(pages, 2.5, 4)} AS source, {fraction(5)} AS luck,"
        f" {number(31, 6)} AS day, {skewed(DAY, 0.8, 7)} AS second FROM range({rows}) r(x)"
    )
    hashed = "CAST(hash({0}) >> 1 AS BIGINT)".format
    host = f"{chosen(HOSTS, number(len(HOSTS), 30, 'page // 50'))} || hash(page // 50) % 20000 || '.ru/'"
    section = chosen(HOSTS, number(len(HOSTS), 31, "page"))
    address = f"'http://' || {host} || {section} || '/' || hash(page) % 100000000"
    query = "'?from=' || (hash(page) % 997) || '&lang=ru&page=' || (hash(page) % 53)"
    other_host = chosen(HOSTS, number(len(HOSTS), 32, "source // 50"))
    referer = f"{other_host} || hash(source // 50) % 20000 || '.ru/'"
    columns = {
        "WatchID": hashed("x"),
        "JavaEnable": f"CAST({fraction(8)} < 0.8 AS SMALLINT)",
        "Title": f"CASE WHEN page % 7 = 0 THEN '' ELSE {words(5, [33, 34, 35, 36, 37], 'page')}"
        " || CASE WHEN page % 4001 = 1 THEN ' - Google' ELSE ' — ' || page % 1000 END END",
        "GoodEvent": "CAST(1 AS SMALLINT)",
        "EventTime": "TIMESTAMP '2013-07-01' + to_seconds(day * 86400 + second)",
        "EventDate": "DATE '2013-07-01' + CAST(day AS INTEGER)",
        "CounterID": "CAST(CASE WHEN luck < 0.0074 THEN 62"
        f" ELSE 1 + {skewed(COUNTERS, 3, 9, 'page // 50')} END AS INTEGER)",
        "ClientIP": f"CAST({number(2**32, 46, 'person')} - 2147483648 AS INTEGER)",
        "RegionID": "CAST(CASE WHEN luck > 0.82 THEN 229"
        f" ELSE 1 + {skewed(REGIONS, 3, 10, 'person')} END AS INTEGER)",
        "UserID": f"CASE WHEN person = {users // 3} THEN {USER} ELSE {hashed('person * 5')} END",
        "OS": f"CAST({skewed(90, 2.5, 11, 'person')} AS SMALLINT)",
        "UserAgent": f"CAST({skewed(80, 2, 12, 'person')} AS SMALLINT)",
        "URL": f"CASE WHEN page % 3001 = 2 THEN 'http://google.ru/' || page ELSE {address}"
        f" || CASE WHEN page % 3 = 0 THEN {query} ELSE '.html' END END",
        "Referer": f"CASE WHEN {fraction(13)} < 0.19 THEN '' WHEN source % 3 = 0"
        f" THEN 'https://www.' || {referer} || source % 100000"
        f" ELSE 'http://' || {referer} || 'search?text=' || hash(source) % 1000000 END",
        "IsRefresh": f"CAST({fraction(14)} < 0.12 AS SMALLINT)",
        "ResolutionWidth": f"CAST({chosen(WIDTHS, skewed(len(WIDTHS), 2, 15, 'person'))} AS SMALLINT)",
        "ResolutionHeight": f"CAST({chosen(HEIGHTS, skewed(len(HEIGHTS), 2, 15, 'person'))} AS SMALLINT)",
        "WindowClientWidth": f"CAST({skewed(1900, 0.7, 16)} AS SMALLINT)",
        "WindowClientHeight": f"CAST({skewed(1000, 0.7, 17)} AS SMALLINT)",
        "MobilePhone": f"CAST(CASE WHEN {fraction(18, 'person')} < 0.06"
        f" THEN 1 + {skewed(80, 2, 19, 'person')} ELSE 0 END AS SMALLINT)",
        "MobilePhoneModel": f"CASE WHEN {fraction(18, 'person')} < 0.05"
        f" THEN {chosen(PHONES, skewed(len(PHONES), 2, 20, 'person'))}"
        f" || CASE WHEN {fraction(21, 'person')} < 0.7 THEN '' ELSE ' ' || {number(24, 22, 'person')} END"
        " ELSE '' END",
        "TraficSourceID": f"CAST({skewed(12, 1.5, 23)} - 1 AS SMALLINT)",
        "SearchEngineID": f"CAST(CASE WHEN {fraction(24)} < 0.13"
        f" THEN 1 + {skewed(95, 5, 25)} ELSE 0 END AS SMALLINT)",
        "SearchPhrase": f"CASE WHEN {fraction(24)} < 0.13"
        f" THEN {words(3, [38, 39, 40], 'phrase')} || ' ' || phrase ELSE '' END",
        "AdvEngineID": f"CAST(CASE WHEN {fraction(26)} < 0.0064"
        f" THEN 2 + {skewed(18, 3, 27)} ELSE 0 END AS SMALLINT)",
        "IsLink": f"CAST({fraction(28)} < 0.09 AS SMALLINT)",
        "IsDownload": f"CAST({fraction(29)} < 0.01 AS SMALLINT)",
        "DontCountHits": f"CAST({fraction(41)} < 0.2 AS SMALLINT)",
        "RefererHash": constant(hashed("source * 7"), REFERER_HASH, 42, 0.03),
        "URLHash": constant(hashed("page * 11"), URL_HASH, 43, 0.03),
        "Age": f"CAST({skewed(60, 1.2, 44, 'person')} AS SMALLINT)",
        "Sex": f"CAST({number(3, 45, 'person')} AS SMALLINT)",
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"SELECT {listed} FROM ({basis}) b ORDER BY CounterID, EventDate, UserID, EventTime, WatchID"


def generate(rows, out):
    return write({"hits": hits(rows)}, out)
