//! What the sessions of a receiver share.

use std::rc::Rc;
use std::sync::Arc;

use super::claims::Claims;
use super::folder::Folder;
use super::memory::Memory;
use super::quota::FolderQuota;

/// What the sessions of a receiver share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) claims: Claims,
    pub(crate) memory: Rc<Memory>,
    pub(crate) upkeep: Arc<FolderQuota>,
}

impl SharedState {
    /// For sessions whose files go to `folder`.
    pub(crate) fn new(folder: &Folder) -> Self {
        let Folder { disk, path, quota, expiry, memory, .. } = folder;
        let upkeep = FolderQuota::new(Arc::clone(disk), path, *quota, *expiry);
        upkeep.clean_up();
        Self { claims: Claims::default(), memory: Memory::new(*memory), upkeep: Arc::new(upkeep) }
    }
}
