//! Writing to the real resource. It must never write outside the root and the
//! kept place of the job it was given.
