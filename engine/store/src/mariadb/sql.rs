//! SQL for MariaDB: the table and the statements of each choice.

use super::super::columns::{COLUMNS, Column, Extra, placed, protected, selected};

/// Type of encrypted values: as long as an RSA ciphertext, the longest.
const BYTES: &str = "varbinary(256)";

/// Place of the encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// The storage engine, all pages of the table.
    Table,
    /// The application, with the column that it adds.
    Application(Extra),
    /// `AES_ENCRYPT` with two arguments: AES-128 in ECB mode, so that equal values have equal ciphertexts.
    Aes,
}

/// Digits of an id in the list for a loop inside the server.
pub const DIGITS: usize = 10;

impl Form {
    /// Returns true if statements see values without encryption.
    fn is_plain(self) -> bool {
        matches!(self, Form::Plain | Form::Table)
    }

    /// Returns the column in addition to the thirteen.
    fn extra(self) -> Option<&'static str> {
        match self {
            Form::Application(Extra::DataKey) => Some("data_key"),
            Form::Application(Extra::NumberCode) => Some("number_code"),
            _ => None,
        }
    }

    /// Returns statements that make an empty table.
    pub fn table(self) -> Vec<String> {
        let kinds = (1..).zip(COLUMNS).map(|(place, (name, plain))| match protected(place) {
            Some(_) if !self.is_plain() => (name, BYTES),
            _ => (name, plain),
        });
        let columns = kinds.chain(self.extra().map(|name| (name, BYTES)));
        let columns: Vec<String> = columns.map(|(name, kind)| format!("{name} {kind} not null")).collect();
        let index = match self {
            Form::Plain | Form::Table => ", index (card_number1, security_code1)",
            Form::Aes => ", index (card_number1)",
            Form::Application(Extra::NumberCode) => ", index (number_code)",
            Form::Application(_) => "",
        };
        let encrypted = if self == Form::Table { "encrypted = yes encryption_key_id = 1" } else { "" };
        vec![
            "drop table if exists cards".to_owned(),
            format!(
                "create table cards ({}, primary key (card_id){index}) engine = InnoDB {encrypted}",
                columns.join(", ")
            ),
        ]
    }

    /// Returns statements that make a table of rows waiting for the server's encryption: in memory, and gone
    /// with the connection.
    pub fn staged() -> Vec<String> {
        let columns = COLUMNS.map(|(name, kind)| format!("{name} {kind} not null"));
        let columns = columns.join(", ");
        vec![
            "drop temporary table if exists staged".to_owned(),
            format!("create temporary table staged ({columns}, primary key (card_id)) engine = MEMORY"),
        ]
    }

    /// Returns the statement that loads rows from a file that the client generates. Ciphertexts of the
    /// application are hexadecimal.
    pub fn load(self, table: &str) -> String {
        let is_sealed = table == "cards" && !self.is_plain();
        let (mut names, mut set) = (Vec::new(), Vec::new());
        for (place, name) in placed() {
            if is_sealed && protected(place).is_some() {
                names.push(format!("@{name}"));
                set.push(format!("{name} = unhex(@{name})"));
            } else {
                names.push(name.to_owned());
            }
        }
        if let Some(name) = self.extra().filter(|_| is_sealed) {
            names.push(format!("@{name}"));
            set.push(format!("{name} = unhex(@{name})"));
        }
        let set = if set.is_empty() { String::new() } else { format!(" set {}", set.join(", ")) };
        format!(
            "load data local infile 'rows' into table {table} character set utf8mb4 fields escaped by '' ({}){set}",
            names.join(", ")
        )
    }

    /// Returns the insertion of a row. Parameters are in the columns' order, each that the server encrypts
    /// followed by its key.
    pub fn insert(self) -> String {
        let values = (1..=COLUMNS.len()).map(|place| self.seal(place, "?", "?"));
        let values: Vec<String> = values.chain(self.extra().map(|_| "?".to_owned())).collect();
        format!("insert into cards values ({})", values.join(", "))
    }

    /// Returns the insertion of waiting rows: `which` is their condition, and `key` the expression of the
    /// key.
    pub fn insert_staged(self, which: &str, key: &str) -> String {
        let values: Vec<String> = placed().map(|(place, name)| self.seal(place, name, key)).collect();
        format!("insert into cards select {} from staged {which}", values.join(", "))
    }

    fn seal(self, place: usize, value: &str, key: &str) -> String {
        match protected(place) {
            Some(_) if self == Form::Aes => format!("aes_encrypt({value}, {key})"),
            _ => value.to_owned(),
        }
    }

    fn open(self, column: Column, key: &str) -> String {
        let stored = column.name();
        match (self, column) {
            (Form::Aes, Column::String) => format!("aes_decrypt({stored}, {key})"),
            (Form::Aes, _) => format!("cast(aes_decrypt({stored}, {key}) as signed)"),
            _ => stored.to_owned(),
        }
    }

    /// Returns the select list of a row: the three protected columns, the nine others, and a data key.
    fn selected(self, key: &str) -> String {
        selected(|column| self.open(column, key), self.extra() == Some("data_key"))
    }

    /// Returns the condition of a number, which uses an index if there is one: `AES_ENCRYPT`, which gives
    /// equal numbers equal ciphertexts, is computed once, for the wanted number.
    fn where_number_is(self, number: &str, key: &str) -> String {
        match self {
            Form::Aes => format!("card_number1 = aes_encrypt({number}, {key})"),
            Form::Application(_) => format!("number_code = {number}"),
            Form::Plain | Form::Table => format!("card_number1 = {number}"),
        }
    }

    /// Returns the read of a row by id: three times the key if the server decrypts, then the id.
    pub fn read(self) -> String {
        format!("select {} from cards where card_id = ?", self.selected("?"))
    }

    /// Returns the search of a row by card number or by the application's code of it: three times the key if
    /// the server decrypts, then the number or code, then the key again.
    pub fn find(self) -> String {
        format!("select {} from cards where {}", self.selected("?"), self.where_number_is("?", "?"))
    }

    /// Returns statements that make the loops inside the server: `insert_cards`, `read_cards` and
    /// `find_cards`.
    pub fn loops(self) -> Vec<String> {
        let by_number = self.where_number_is("wanted", "value_key");
        vec![
            "drop procedure if exists insert_cards".to_owned(),
            "drop procedure if exists read_cards".to_owned(),
            "drop procedure if exists find_cards".to_owned(),
            self.insert_loop(),
            self.read_loop("read_cards", "card_id = wanted"),
            self.read_loop("find_cards", &by_number),
        ]
    }

    /// Returns the procedure of the insert loop. Its parameters are the first and last id of the waiting
    /// rows, the rows of a commit, and the key.
    fn insert_loop(self) -> String {
        let insert = self.insert_staged("where card_id = at", "value_key");
        format!(
            "create procedure insert_cards(first int, last int, rows_per_commit int, value_key varbinary(32))
             begin
                 declare at int default first;
                 start transaction;
                 while at <= last do
                     {insert};
                     set at = at + 1;
                     if (at - first) mod rows_per_commit = 0 then
                         commit;
                         start transaction;
                     end if;
                 end while;
                 commit;
             end"
        )
    }

    /// Returns the procedure of a read loop. Its parameters are the wanted numbers as decimal digits of fixed
    /// length, their count, and the key. Its result is the sums of the numbers, of the codes, and of the
    /// strings' checksums.
    fn read_loop(self, name: &str, is_it: &str) -> String {
        let selected = self.selected("value_key");
        let digits = if name == "read_cards" { DIGITS } else { 16 };
        format!(
            "create procedure {name}(all_wanted mediumtext, many int, value_key varbinary(32))
             begin
                 declare at int default 0;
                 declare wanted, numbers, codes, strings bigint default 0;
                 declare number1, number2, number3, number4 bigint;
                 declare code1, code2, code3, code4 smallint;
                 declare string1, string2, string3, string4 varchar(36);
                 while at < many do
                     set wanted = substr(all_wanted, 1 + {digits} * at, {digits});
                     select {selected}
                     into number1, code1, string1,
                         number2, number3, number4, code2, code3, code4, string2, string3, string4
                     from cards where {is_it};
                     set numbers = numbers + number1, codes = codes + code1, strings = strings + crc32(string1);
                     set at = at + 1;
                 end while;
                 select numbers, codes, strings;
             end"
        )
    }
}
