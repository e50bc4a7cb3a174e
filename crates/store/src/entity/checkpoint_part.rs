//! The parts of checkpoints; converted together with them.

use sea_orm::entity::prelude::*;

/// One sandbox in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "checkpoint_parts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub checkpoint: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i64,
    pub sandbox: String,
    pub snapshot: String,
    pub hidden_commit: Option<String>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::checkpoint::Entity",
        from = "Column::Checkpoint",
        to = "super::checkpoint::Column::Id"
    )]
    Checkpoint,
}

impl Related<super::checkpoint::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Checkpoint.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
