//! Clauses of `CREATE` statements.

use super::refuse;
use crate::disguise::NO_TYPE;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    CheckConstraint, ColumnDef, ConstraintCharacteristics, ConstraintReferenceMatchKind, CreateIndex,
    CreateTable, CreateTableOptions, CreateView, DataType, DeferrableInitial, ForeignKeyConstraint,
    HiveDistributionStyle, IndexColumn, IndexType, NullsDistinctOption, OrderByExpr, PrimaryKeyConstraint,
    UniqueConstraint, ViewColumnDef,
};

/// The clauses of `CREATE TABLE` other than columns, constraints, options and query.
pub fn create_table(create: &CreateTable) -> Result<()> {
    let CreateTable {
        or_replace: _,
        if_not_exists: _,
        name: _,
        columns: _,
        constraints: _,
        table_options: _,
        query: _,
        temporary: _,
        external,
        dynamic,
        global,
        transient,
        volatile,
        iceberg,
        snapshot,
        hive_distribution,
        hive_formats,
        file_format,
        location,
        without_rowid,
        like,
        clone,
        version,
        comment,
        on_commit: _,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        // See `has_foreign_properties`.
        copy_grants: _,
        enable_schema_evolution: _,
        change_tracking: _,
        data_retention_time_in_days: _,
        max_data_extension_time_in_days: _,
        default_ddl_collation,
        with_aggregation_policy: _,
        with_row_access_policy: _,
        with_storage_lifecycle_policy: _,
        with_tags: _,
        external_volume: _,
        base_location: _,
        catalog: _,
        catalog_sync: _,
        storage_serialization_policy: _,
        target_lag: _,
        warehouse: _,
        refresh_mode: _,
        initialize: _,
        require_user: _,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = create;
    if *external {
        return Err(Error::not_supported("CREATE EXTERNAL TABLE").with_hint("read files with FROM 'path'"));
    }
    refuse([
        (*global == Some(true), "global temporary tables"),
        (like.is_some() || clone.is_some(), "CREATE TABLE LIKE"),
        (inherits.is_some(), "INHERITS"),
        (partition_of.is_some() || for_values.is_some(), "PARTITION OF"),
        (matches!(hive_distribution, HiveDistributionStyle::PARTITIONED { .. }), "PARTITIONED BY"),
        (matches!(hive_distribution, HiveDistributionStyle::SKEWED { .. }), "SKEWED BY"),
        (partition_by.is_some(), "PARTITION BY of a table"),
        (cluster_by.is_some() || clustered_by.is_some(), "CLUSTER BY"),
        (order_by.is_some(), "ORDER BY of a table"),
        (primary_key.is_some(), "PRIMARY KEY behind the columns"),
        (
            hive_formats.is_some() || file_format.is_some() || location.is_some(),
            "the format and location of a table",
        ),
        (*without_rowid, "WITHOUT ROWID"),
        (*strict, "STRICT"),
        (comment.is_some(), "COMMENT"),
        (version.is_some(), "versions of a table"),
        (on_cluster.is_some(), "ON CLUSTER"),
        (*dynamic || *transient || *volatile || *iceberg || *snapshot, "tables of this kind"),
        (diststyle.is_some() || distkey.is_some(), "DISTSTYLE and DISTKEY"),
        (sortkey.is_some(), "SORTKEY"),
        (backup.is_some(), "BACKUP"),
        (default_ddl_collation.is_some(), "collations"),
        (has_foreign_properties(create), "properties of tables of other systems"),
    ])
}

/// True if a table has properties that only other systems know.
fn has_foreign_properties(create: &CreateTable) -> bool {
    create.copy_grants
        || create.require_user
        || create.enable_schema_evolution.is_some()
        || create.change_tracking.is_some()
        || create.data_retention_time_in_days.is_some()
        || create.max_data_extension_time_in_days.is_some()
        || create.with_aggregation_policy.is_some()
        || create.with_row_access_policy.is_some()
        || create.with_storage_lifecycle_policy.is_some()
        || create.with_tags.is_some()
        || create.external_volume.is_some()
        || create.base_location.is_some()
        || create.catalog.is_some()
        || create.catalog_sync.is_some()
        || create.storage_serialization_policy.is_some()
        || create.target_lag.is_some()
        || create.warehouse.is_some()
        || create.refresh_mode.is_some()
        || create.initialize.is_some()
}

/// The columns of `CREATE TABLE t (a, b) AS query`, which have only names.
pub fn named_only(create: &CreateTable) -> Result<()> {
    let is_name = |column: &ColumnDef| {
        let ColumnDef { name: _, data_type, options } = column;
        let has_type = !matches!(data_type, DataType::Custom(name, _) if name.to_string().contains(NO_TYPE));
        !has_type && options.is_empty()
    };
    if create.constraints.is_empty() && create.columns.iter().all(is_name) {
        return Ok(());
    }
    let what = "types, defaults and constraints in CREATE TABLE … AS";
    Err(Error::not_supported(what)
        .with_hint("the query gives the types: write t (a, b) AS …, and add constraints later"))
}

/// The clauses of a primary key besides its columns.
pub fn primary_key(key: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint { name: _, index_name, index_type, columns, index_options, characteristics } =
        key;
    index(index_type.as_ref())?;
    refuse([(index_name.is_some() || !index_options.is_empty(), "options of the index of a key")])?;
    index_columns(columns)?;
    enforcement(characteristics.as_ref())
}

/// The clauses of a unique key besides its columns.
pub fn unique(key: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name,
        index_type_display: _,
        index_type,
        columns,
        index_options,
        characteristics,
        nulls_distinct,
    } = key;
    index(index_type.as_ref())?;
    refuse([
        (index_name.is_some() || !index_options.is_empty(), "options of the index of a key"),
        (matches!(nulls_distinct, NullsDistinctOption::NotDistinct), "UNIQUE NULLS NOT DISTINCT"),
    ])?;
    index_columns(columns)?;
    enforcement(characteristics.as_ref())
}

/// The clauses of a check besides its condition.
pub fn check(check: &CheckConstraint) -> Result<()> {
    let CheckConstraint { name: _, expr: _, enforced } = check;
    refuse([(*enforced == Some(false), "constraints that are NOT ENFORCED")])
}

/// The clauses of a foreign key besides its columns.
pub fn foreign_key(key: &ForeignKeyConstraint) -> Result<()> {
    let ForeignKeyConstraint {
        name: _,
        index_name,
        columns: _,
        foreign_table: _,
        referred_columns: _,
        on_delete: _,
        on_update: _,
        match_kind,
        characteristics,
    } = key;
    refuse([
        (index_name.is_some(), "the index of a foreign key"),
        (
            !matches!(match_kind, None | Some(ConstraintReferenceMatchKind::Simple)),
            "foreign keys with MATCH FULL or MATCH PARTIAL",
        ),
    ])?;
    enforcement(characteristics.as_ref())
}

/// When a constraint is checked: only immediately.
fn enforcement(characteristics: Option<&ConstraintCharacteristics>) -> Result<()> {
    let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = characteristics else {
        return Ok(());
    };
    refuse([
        (*deferrable == Some(true), "constraints that are DEFERRABLE"),
        (matches!(initially, Some(DeferrableInitial::Deferred)), "constraints that are INITIALLY DEFERRED"),
        (*enforced == Some(false), "constraints that are NOT ENFORCED"),
    ])
}

/// The options of a key's columns. The order in which they are stored is not visible, so `ASC` and `DESC` are
/// accepted.
pub fn index_columns(columns: &[IndexColumn]) -> Result<()> {
    for IndexColumn { column, operator_class } in columns {
        let OrderByExpr { expr: _, options: _, with_fill } = column;
        refuse([
            (operator_class.is_some(), "operator classes of an index"),
            (with_fill.is_some(), "WITH FILL"),
        ])?;
    }
    Ok(())
}

/// Refuses index types: there is only one kind of index.
fn index(using: Option<&IndexType>) -> Result<()> {
    match using {
        None | Some(IndexType::BTree) => Ok(()),
        Some(_) => {
            Err(Error::not_supported("USING for an index")
                .with_hint("there is one kind of index: leave it out"))
        }
    }
}

/// The clauses of `CREATE INDEX` other than table and columns.
pub fn create_index(create: &CreateIndex) -> Result<()> {
    let CreateIndex {
        name: _,
        table_name: _,
        columns,
        unique: _,
        if_not_exists: _,
        // Indexes are always built while others write.
        concurrently: _,
        using,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = create;
    index(using.as_ref())?;
    refuse([
        (predicate.is_some(), "indexes with WHERE"),
        (!include.is_empty(), "indexes with INCLUDE"),
        (*nulls_distinct == Some(false), "UNIQUE NULLS NOT DISTINCT"),
        (!with.is_empty() || !index_options.is_empty() || !alter_options.is_empty(), "options of an index"),
    ])?;
    index_columns(columns)
}

/// The clauses of `CREATE VIEW` other than the names of its columns and the query.
pub fn create_view(create: &CreateView) -> Result<()> {
    let CreateView {
        or_replace: _,
        name: _,
        columns,
        query: _,
        if_not_exists: _,
        name_before_not_exists: _,
        or_alter,
        materialized,
        secure,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        temporary: _,
        copy_grants,
        to,
        params,
    } = create;
    refuse([
        (*materialized, "materialized views"),
        (*or_alter, "CREATE OR ALTER"),
        (*secure, "secure views"),
        (!matches!(options, CreateTableOptions::None), "options of a view"),
        (!cluster_by.is_empty(), "CLUSTER BY"),
        (comment.is_some(), "COMMENT"),
        (*with_no_schema_binding, "WITH NO SCHEMA BINDING"),
        (*copy_grants, "COPY GRANTS"),
        (to.is_some(), "CREATE VIEW … TO"),
        (params.is_some(), "parameters of a view"),
    ])?;
    for ViewColumnDef { name: _, data_type, options } in columns {
        refuse([(data_type.is_some() || options.is_some(), "types and options of the columns of a view")])?;
    }
    Ok(())
}
