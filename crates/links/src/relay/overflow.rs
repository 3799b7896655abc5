//! How many datagrams found a socket's receive buffer full: Linux's column `drops`.

use std::collections::HashMap;
use std::os::fd::AsFd;

/// Drops by the socket's inode, of all UDP sockets of this network namespace. Empty where the system
/// does not say.
pub fn drops() -> HashMap<u64, u64> {
    ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|table| parse(&table))
        .collect()
}

/// The inode of a socket.
pub fn inode(socket: impl AsFd) -> u64 {
    rustix::fs::fstat(socket).map(|stat| stat.st_ino).unwrap_or_default()
}

/// `sl local rem st queues tr:tm retrnsmt uid timeout inode ref pointer drops`, after a heading.
fn parse(table: &str) -> Vec<(u64, u64)> {
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let inode = fields.nth(9)?.parse().ok()?;
        Some((inode, fields.nth(2)?.parse().ok()?))
    };
    table.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 2013: 0100007F:2328 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 41267 2 0000000000000000 17
 broken line
";
        assert_eq!(parse(table), [(41_267, 17)]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_of_ours_is_listed() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(drops().get(&inode(&socket)), Some(&0));
    }
}
