-- Version 1. BYTES is BLOB in SQLite and BYTEA in PostgreSQL; all else is
-- the same text on both. Once released it is never edited: a change is a
-- further file.

CREATE TABLE resources (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    path BYTES NOT NULL,
    device BIGINT NOT NULL,
    inode BIGINT NOT NULL,
    path_hash TEXT NOT NULL
);
CREATE UNIQUE INDEX resources_place ON resources (kind, path_hash);

CREATE TABLE plans (
    id TEXT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    name TEXT NOT NULL,
    resource TEXT NOT NULL REFERENCES resources (id),
    state TEXT NOT NULL,
    owner_host TEXT,
    owner_boot TEXT,
    owner_space BIGINT,
    owner_pid BIGINT,
    owner_started BIGINT,
    settings TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    next_checkpoint BIGINT NOT NULL
);
CREATE UNIQUE INDEX plans_sequence ON plans (sequence);
CREATE UNIQUE INDEX plans_name ON plans (name) WHERE state <> 'discarded';
CREATE INDEX plans_resource ON plans (resource);

CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    plan TEXT NOT NULL REFERENCES plans (id),
    resource TEXT NOT NULL REFERENCES resources (id),
    strategy TEXT NOT NULL,
    state TEXT NOT NULL,
    place BYTES NOT NULL,
    root_path BYTES,
    root_device BIGINT,
    root_inode BIGINT,
    view TEXT NOT NULL,
    base TEXT,
    base_branch TEXT,
    base_head TEXT,
    rules TEXT,
    ignored BIGINT NOT NULL,
    binds BYTES NOT NULL,
    unsettled BYTES NOT NULL
);
CREATE UNIQUE INDEX sandboxes_sequence ON sandboxes (sequence);
CREATE UNIQUE INDEX sandboxes_boundary ON sandboxes (plan, resource);

CREATE TABLE checkpoints (
    id TEXT NOT NULL PRIMARY KEY,
    plan TEXT NOT NULL REFERENCES plans (id),
    number BIGINT NOT NULL,
    message TEXT,
    step TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX checkpoints_number ON checkpoints (plan, number);

CREATE TABLE checkpoint_parts (
    checkpoint TEXT NOT NULL REFERENCES checkpoints (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id),
    snapshot TEXT NOT NULL,
    hidden_commit TEXT,
    PRIMARY KEY (checkpoint, position)
);

CREATE TABLE journal (
    id TEXT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    version BIGINT NOT NULL,
    kind TEXT NOT NULL,
    phase TEXT NOT NULL,
    plan TEXT NOT NULL REFERENCES plans (id),
    owner_host TEXT,
    owner_boot TEXT,
    owner_space BIGINT,
    owner_pid BIGINT,
    owner_started BIGINT,
    ops TEXT,
    payload TEXT NOT NULL
);
CREATE UNIQUE INDEX journal_sequence ON journal (sequence);
CREATE INDEX journal_plan ON journal (plan);
CREATE INDEX journal_phase ON journal (phase);
