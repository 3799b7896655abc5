use super::*;

const TOKEN: Token = [7; 16];

/// Two sockets that take datagrams from each other only.
fn pair() -> [PathSocket; 2] {
    let free = |_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let [left, right] = [0, 1].map(free);
    [(left, right), (right, left)]
        .map(|(local, remote)| PathSocket::open(Some(local), remote).unwrap())
}

fn spec(rate: Option<Rate>) -> LoadSpec {
    LoadSpec { token: TOKEN, kind: 3, length: 1_200, rate }
}

/// What is sent at a rate for 0.3 s, and what is received.
fn carried(rate: Rate) -> (Sent, Received) {
    let [left, right] = pair();
    let mut receiving = DatagramLoad::start(left, spec(None)).unwrap();
    let mut sending = DatagramLoad::start(right, spec(Some(rate))).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let sent = sending.end_sending().unwrap().expect("it sends");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let received = receiving.end_receiving().unwrap().expect("it received");
    assert_eq!(receiving.received_bytes(), received.bytes);
    assert!(receiving.end_receiving().unwrap().is_none());
    (sent, received)
}

#[test]
fn what_one_end_sends_the_other_receives() {
    let (sent, received) = carried(Rate::from_mbit(50));
    assert!(sent.sent > 200 && sent.refused == 0, "{sent:?}");
    assert_eq!(received.received, sent.sent);
    assert_eq!(received.bytes, received.received * 1_200);
    assert_eq!(received.log.last().map(|last| last.1), Some(received.bytes));
    assert_eq!((received.reordered, received.dropped), (0, 0));
}

/// Faster than it can be read: what is missing was dropped by this machine, and is counted so.
#[test]
fn drops_of_the_receiving_machine_are_known() {
    let (sent, received) = carried(Rate::from_mbit(100_000));
    let missing = sent.sent - sent.refused - received.received;
    assert_eq!(missing > 0, received.dropped > 0, "{sent:?}, {missing} missing");
}

#[test]
fn a_socket_takes_datagrams_from_its_other_end_only() {
    let echo = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = PathSocket::open(None, echo.local_addr().unwrap()).unwrap();
    let unmatched = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let name = [TOKEN.as_slice(), &[2; 30]].concat();
    unmatched.send_to(&name, path.socket.local_addr()).unwrap();
    assert!(!path.introduce(&name, Duration::from_millis(200)).unwrap());
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 100];
        let (len, from) = echo.recv_from(&mut bytes).unwrap();
        echo.send_to(&bytes[..len], from).unwrap();
    });
    assert!(path.introduce(&name, Duration::from_secs(2)).unwrap());
    answering.join().unwrap();
}

/// Linux reports that a port is closed before it hands over what came from there earlier.
#[test]
fn an_answer_counts_though_its_sender_is_gone() {
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = PathSocket::open(None, gone.local_addr().unwrap()).unwrap();
    let name = [TOKEN.as_slice(), &[2; 30]].concat();
    gone.send_to(&name, ("127.0.0.1", path.socket.local_addr().port())).unwrap();
    drop(gone);
    assert!(path.introduce(&name, Duration::from_secs(2)).unwrap());
}

/// A closed port says so at once: that ends no attempt.
#[test]
fn a_port_that_opens_meanwhile_is_reached() {
    let late = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let path = PathSocket::open(None, late).unwrap();
    let name = [TOKEN.as_slice(), &[2; 30]].concat();
    let answering = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let echo = std::net::UdpSocket::bind(late).unwrap();
        let mut bytes = [0; 100];
        let (len, from) = echo.recv_from(&mut bytes).unwrap();
        echo.send_to(&bytes[..len], from).unwrap();
    });
    assert!(path.introduce(&name, Duration::from_secs(5)).unwrap());
    answering.join().unwrap();
}
