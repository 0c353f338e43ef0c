use super::*;

#[test]
#[ignore]
fn scratch() {
    let library = open(Mechanism::Spnego, Some(Path::new("/tmp/e2lab/krb5.conf"))).expect("a library");
    println!("{}", library.version);
    for (user, password) in [("u00000", "password-0"), ("u00000", "bad"), ("nobody", "x")] {
        let name = library.user(user).expect("name");
        let credentials = match library.sign_in(Mechanism::Spnego, &name, password) {
            Ok(credentials) => credentials,
            Err(words) => {
                println!("{user} {password} {words}");
                continue;
            }
        };
        for host in ["HTTP@web1.tollbar.test", "HTTP@web9.tollbar.test"] {
            let service = library.service(host).expect("service");
            for delegates in [false, false, true, true] {
                let start = std::time::Instant::now();
                let mut context = library.context(Mechanism::Spnego, delegates);
                let step = context.step(&credentials, &service, &[]);
                println!("{host} {:?} {:?}", step.map(|step| (step.token.len(), step.is_complete)), start.elapsed());
            }
        }
        let service = library.service("HTTP@web1.tollbar.test").expect("service");
        let start = std::time::Instant::now();
        for _ in 0..2000 {
            let mut context = library.context(Mechanism::Spnego, false);
            context.step(&credentials, &service, &[]).expect("token");
        }
        println!("{:?} a token", start.elapsed() / 2000);
        let start = std::time::Instant::now();
        for _ in 0..100 {
            let credentials = library.sign_in(Mechanism::Spnego, &name, password).unwrap();
            let mut context = library.context(Mechanism::Spnego, false);
            context.step(&credentials, &service, &[]).expect("token");
        }
        println!("{:?} a sign-in", start.elapsed() / 100);
    }
}
