-- Version 2: the resource graph. Each row carries the generation that wrote
-- it; `graph_gone` names what was removed, so that others can follow.

CREATE TABLE graph_state (
    one BIGINT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL
);
INSERT INTO graph_state VALUES (1, 0);

CREATE TABLE graph_resources (
    id TEXT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL,
    type_name TEXT NOT NULL,
    name TEXT NOT NULL,
    location TEXT,
    capabilities TEXT,
    policy TEXT,
    content TEXT,
    device BIGINT,
    inode BIGINT,
    canonical TEXT,
    canonical_auto BOOLEAN,
    properties TEXT
);
CREATE INDEX graph_resources_generation ON graph_resources (generation);

CREATE TABLE graph_edges (
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    kind TEXT NOT NULL,
    coherence TEXT,
    generation BIGINT NOT NULL,
    PRIMARY KEY (parent, child, kind)
);
CREATE INDEX graph_edges_child ON graph_edges (child);
CREATE INDEX graph_edges_generation ON graph_edges (generation);

CREATE TABLE graph_projects (
    name TEXT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL,
    read_only BOOLEAN NOT NULL,
    links TEXT NOT NULL
);

CREATE TABLE graph_gone (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);
CREATE INDEX graph_gone_generation ON graph_gone (generation);
