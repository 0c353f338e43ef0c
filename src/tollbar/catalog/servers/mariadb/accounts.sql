-- The bootstrap, which this is part of, has no accounts before it is told to read them.
flush privileges;
create user tollbar@localhost;
grant all privileges on *.* to tollbar@localhost with grant option;
delete from mysql.global_priv where user not in ('tollbar', 'mariadb.sys');
create database tollbar;
