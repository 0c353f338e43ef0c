//! Many clients, slow clients, and clients that go away.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt;
use serde_json::json;

use super::super::connection::Connection;
use super::{Client, Served, get};
use crate::tls::Stream;

#[test]
fn a_client_that_asks_without_reading_is_answered_once_it_reads() {
    let served = Served::plain();
    let asking = TcpStream::connect(served.address).unwrap();
    let mut reading = Client::new(asking.try_clone().unwrap(), None);
    const REQUESTS: usize = 20_000;
    let sender = std::thread::spawn(move || {
        let mut asking = Client::new(asking, None);
        for index in 0..REQUESTS {
            asking.send(get(&format!("/bytes/{}", 1000 + index % 3)));
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    for index in 0..REQUESTS {
        assert_eq!(1000 + index % 3, reading.reply().body.len());
    }
    sender.join().unwrap();
}

#[test]
fn two_hundred_connections_at_once() {
    let served = Served::plain();
    let mut clients: Vec<Client> = (0..200).map(|_| served.client()).collect();
    for round in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            client.send(get(&format!("/bytes/{}", index + round)));
        }
        for (index, client) in clients.iter_mut().enumerate() {
            assert_eq!(index + round, client.reply().body.len());
        }
    }
}

#[test]
fn without_a_descriptor_left_a_connection_waits_and_the_server_rests() {
    let served = Served::start(&json!({"listen": "127.0.0.1:0"}), Some(40));
    let mut clients: Vec<Client> = (0..60).map(|_| served.client()).collect();
    for client in &mut clients {
        client.send(get("/bytes/1"));
    }
    assert_eq!(200, clients[0].reply().status);
    let before = served.cpu_ticks();
    std::thread::sleep(Duration::from_secs(1));
    let used = served.cpu_ticks() - before;
    assert!(used <= 20, "{used} ticks of 10 ms in a second of nothing to do");
    // Each client that goes makes room for one that waits.
    for mut client in clients.drain(1..) {
        assert_eq!(200, client.reply().status);
    }
}

#[test]
fn clients_that_go_away_are_forgotten() {
    let served = Served::plain();
    let at_rest = descriptors(&served);
    for round in 0..100 {
        let mut client = served.client();
        match round % 4 {
            0 => {}
            1 => client.send("GET /bytes/1 HT"),
            2 => client.send(get("/bytes/8000000")),
            _ => {
                client.send(get("/bytes/8000000"));
                // The socket closes by a reset.
                sockopt::set_socket_linger(&client.socket, Some(Duration::ZERO)).unwrap();
            }
        }
    }
    assert_eq!(5, served.ask("/bytes/5").body.len());
    for _ in 0..6000 {
        if descriptors(&served) == at_rest {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} descriptors are open, {at_rest} were at rest", descriptors(&served));
}

fn descriptors(served: &Served) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", served.process.id())).unwrap().count()
}

#[test]
fn a_connection_without_progress_is_overdue_after_a_minute() {
    let (socket, _peer) = UnixStream::pair().unwrap();
    let connection = Connection::new(Stream::plain(OwnedFd::from(socket)), 1000);
    assert_eq!([false, false, true], [1000, 1060, 1061].map(|now_s| connection.is_overdue(now_s)));
}

#[test]
fn a_connection_that_rests_is_small() {
    // The memory of ten thousand of them is part of the server's.
    assert!(std::mem::size_of::<Connection>() <= 256, "{}", std::mem::size_of::<Connection>());
}
