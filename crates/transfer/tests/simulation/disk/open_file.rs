//! A file that a process has open.

use std::io;

use weir_transfer::file::DiskFile;

use super::*;

impl OpenFile {
    fn act<R>(&self, act: impl FnOnce(&mut Inode) -> R) -> io::Result<R> {
        let on_inode = |state: &mut State| match state.inodes.get_mut(&self.inode) {
            Some(inode) => Ok(act(inode)),
            None => Err(gone()),
        };
        self.disk.state().act(self.disk.process, on_inode)
    }
}

impl DiskFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        self.act(|inode| inode.content.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.act(|inode| {
            let there = inode.content.get(offset as usize..).unwrap_or_default();
            let len = there.len().min(buf.len());
            buf[..len].copy_from_slice(&there[..len]);
            len
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        match state.begin(self.disk.process)? {
            Fate::Done => state.write(self.inode, offset, bytes),
            Fate::Before(death) => Err(state.end(death)),
            Fate::Amid(death) => {
                let part = state.whole_pages(offset, bytes.len());
                state.tally.count("writes cut short by a death");
                let _ = state.write(self.inode, offset, &bytes[..part]);
                Err(state.end(death))
            }
            Fate::After(death) => {
                let _ = state.write(self.inode, offset, bytes);
                Err(state.end(death))
            }
        }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.act(|inode| {
            inode.content.resize(size as usize, 0);
            inode.dirty = true;
            inode.changes += 1;
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.act(|inode| {
            inode.durable.clone_from(&inode.content);
            inode.dirty = false;
        })
    }

    fn watch(&self) -> io::Result<Watch> {
        self.act(Inode::state)
    }

    fn is_unchanged(&self, since: &Watch) -> io::Result<bool> {
        let compare = |state: &mut State| {
            let has_final_name = state.names.iter().any(|(path, inode)| {
                *inode == self.inode && !intruder::is_its(path) && !intruder::is_partial(path)
            });
            let inode = state.inodes.get_mut(&self.inode).ok_or_else(gone)?;
            let same = inode.state() == *since;
            // Nothing is promised of what happens after this look at it.
            inode.is_published |= same && has_final_name;
            Ok(same)
        };
        self.disk.state().act(self.disk.process, compare)
    }

    fn attributes(&self) -> io::Result<Attributes> {
        self.act(|inode| inode.attributes)
    }

    fn set_mode(&self, mode: u16) -> io::Result<()> {
        self.act(|inode| inode.attributes.mode = mode)
    }

    fn set_modified(&self, modified: (i64, u32)) -> io::Result<()> {
        self.act(|inode| inode.attributes.modified = modified)
    }

    fn names(&self) -> io::Result<u64> {
        let names = |state: &mut State| Ok(state.names_of(self.inode));
        self.disk.state().act(self.disk.process, names)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let find = |state: &mut State| Ok(state.names.get(path) == Some(&self.inode));
        self.disk.state().act(self.disk.process, find)
    }

    fn give_name(&self, _: &Path, to: &Path) -> io::Result<()> {
        let link = |state: &mut State| {
            if state.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if state.names_of(self.inode) == 0 {
                return Err(gone());
            }
            state.name(to, self.inode);
            state.published.push(to.to_owned());
            Ok(())
        };
        self.disk.state().act(self.disk.process, link)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
        }
    }
}
