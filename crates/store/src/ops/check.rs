//! The check of the store itself: the file's own, and that every row reads.

use sandbar_ports::PortResult;
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _, LoaderTrait as _,
    Statement,
};

use crate::SqlStore;
use crate::entity::{
    checkpoint, checkpoint_part, graph_edge, graph_project, graph_resource, journal, plan,
    resource, sandbox,
};
use crate::error::{Fault, Trouble, trouble};
use crate::transact::read;

/// Returns what is wrong; empty is good.
pub(super) async fn run(store: &SqlStore) -> PortResult<Vec<String>> {
    let file = store.is_file();
    read(
        &store.db,
        || "check the store".to_owned(),
        |db| async move {
            let mut wrong = Vec::new();
            if file {
                wrong.extend(file_check(&db).await?);
            }
            if wrong.is_empty() {
                match rows(&db).await {
                    Ok(found) => wrong.extend(found),
                    Err(Fault::Database(error)) if trouble(&error) == Trouble::Corrupt => {
                        wrong.push(error.to_string());
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Ok(wrong)
        },
    )
    .await
}

/// Asks SQLite for its own opinion.
async fn file_check(db: &DatabaseConnection) -> Result<Vec<String>, Fault> {
    let query = |sql| Statement::from_string(DbBackend::Sqlite, sql);
    let mut wrong = Vec::new();
    match db.query_all_raw(query("PRAGMA integrity_check(20)")).await {
        Ok(rows) => {
            for row in rows {
                let line: String = row.try_get_by_index(0)?;
                if line != "ok" {
                    wrong.push(line);
                }
            }
        }
        Err(error) if trouble(&error) == Trouble::Corrupt => {
            wrong.push(error.to_string());
            return Ok(wrong);
        }
        Err(error) => return Err(error.into()),
    }
    for row in db.query_all_raw(query("PRAGMA foreign_key_check")).await? {
        let table: String = row.try_get_by_index(0)?;
        let parent: String = row.try_get_by_index(2)?;
        wrong.push(format!(
            "a row of {table} refers to a missing one of {parent}"
        ));
    }
    Ok(wrong)
}

/// Reads every row of every table.
async fn rows(db: &DatabaseConnection) -> Result<Vec<String>, Fault> {
    let mut wrong = Vec::new();
    let mut note = |error: Option<crate::convert::BadRow>| {
        wrong.extend(error.map(|error| error.to_string()));
    };
    for row in resource::Entity::find().all(db).await? {
        note(resource::from_row(row).err());
    }
    for row in plan::Entity::find().all(db).await? {
        note(plan::from_row(row).err());
    }
    for row in sandbox::Entity::find().all(db).await? {
        note(sandbox::from_row(row).err());
    }
    let checkpoints = checkpoint::Entity::find().all(db).await?;
    let parts = checkpoints.load_many(checkpoint_part::Entity, db).await?;
    for (row, parts) in checkpoints.into_iter().zip(parts) {
        note(checkpoint::from_rows(row, parts).err());
    }
    for row in journal::Entity::find().all(db).await? {
        note(journal::from_row(row).err());
    }
    for row in graph_resource::Entity::find().all(db).await? {
        note(graph_resource::from_row(row).err());
    }
    for row in graph_edge::Entity::find().all(db).await? {
        note(graph_edge::from_row(row).err());
    }
    for row in graph_project::Entity::find().all(db).await? {
        note(graph_project::from_row(row).err());
    }
    Ok(wrong)
}
