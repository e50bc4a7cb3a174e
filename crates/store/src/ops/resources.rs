//! Resources: registered once a type and path.

use async_trait::async_trait;
use sandbar_domain::ResourceId;
use sandbar_domain::resource::Resource;
use sandbar_ports::PortResult;
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, ConnectionTrait, DatabaseConnection,
    DatabaseTransaction, EntityTrait as _, IntoActiveModel as _, QueryFilter as _,
};

use crate::entity::resource::{self, Column, Entity};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Registers a root, or returns what it is registered as.
pub(super) async fn register(db: &DatabaseConnection, new: Resource) -> PortResult<Resource> {
    let change = Register(new);
    // Nearly always it is there and unchanged: then nothing is written.
    let found = read(
        db,
        || change.what(),
        |db| {
            let new = change.0.clone();
            async move { find(&db, &new).await }
        },
    )
    .await?;
    match found {
        Some(resource) if resource.root == change.0.root => Ok(resource),
        _ => write(db, &change).await,
    }
}

/// Returns one.
pub(super) async fn get(db: &DatabaseConnection, id: ResourceId) -> PortResult<Option<Resource>> {
    read(
        db,
        || format!("read resource {id}"),
        |db| async move {
            let row = Entity::find_by_id(id.to_string()).one(&db).await?;
            Ok(row.map(resource::from_row).transpose()?)
        },
    )
    .await
}

struct Register(Resource);

#[async_trait]
impl Change for Register {
    type Output = Resource;

    fn what(&self) -> String {
        format!("register {}", self.0.root.path.display())
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<Resource, Fault> {
        let (resource, known) = match find(tx, &self.0).await? {
            Some(found) if found.root == self.0.root => return Ok(found),
            Some(found) => {
                let root = self.0.root.clone();
                (Resource { root, ..found }, true)
            }
            None => (self.0.clone(), false),
        };
        let row = resource::to_row(&resource).into_active_model();
        if known {
            Entity::update(row.reset_all()).exec(tx).await?;
        } else {
            Entity::insert(row).exec_without_returning(tx).await?;
        }
        Ok(resource)
    }
}

/// Finds the resource of a type at a path.
async fn find(db: &impl ConnectionTrait, new: &Resource) -> Result<Option<Resource>, Fault> {
    let row = Entity::find()
        .filter(Column::Kind.eq(new.kind.word()))
        .filter(Column::PathHash.eq(resource::path_hash(&new.root.path)))
        .one(db)
        .await?;
    Ok(row.map(resource::from_row).transpose()?)
}
