//! Three-way merge of texts. Touching hunks are a conflict.
