//! SQL for PostgreSQL: the table and the statements of each choice. The statements call pgcrypto directly,
//! because SQL functions around its calls would cost more than the calls.

use super::super::columns::{
    BIGINT, COLUMNS, Column, Extra, SMALLINT, TEXT, names, placed, protected, selected,
};

/// Returns the type of a parameter for a column of this type: the table checks its length once.
fn bare(kind: &str) -> &str {
    if kind == TEXT { "varchar" } else { kind }
}

/// Place and kind of the encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// The application, with the column that it adds.
    Application(Extra),
    /// Encryption to an OpenPGP key of RSA, whose modulus has this number of bits.
    PgpPublic {
        bits: usize,
    },
    /// `pgp_sym_encrypt` with these options.
    PgpSymmetric(&'static str),
    /// AES-CBC with a random initialisation vector in front of each value.
    Iv {
        /// True if an HMAC of the card number is indexed.
        indexed: bool,
    },
}

/// Name of the column by which an encrypted card number is found.
const NUMBER_CODE: &str = "number_code";
const DATA_KEY: &str = "data_key";

/// Expressions of a statement's keys.
struct Keys {
    value: String,
    code: String,
}

impl Keys {
    /// Returns the keys as parameters from this number on.
    fn parameters(form: Form, first: usize) -> Keys {
        Keys { value: format!("${first}::{}", form.key_type()), code: format!("${}::bytea", first + 1) }
    }

    /// Returns the keys as names in procedures.
    fn named() -> Keys {
        Keys { value: "value_key".to_owned(), code: "code_key".to_owned() }
    }
}

impl Form {
    /// Returns true if the server encrypts, and so gets a key with each statement.
    pub fn is_of_server(self) -> bool {
        !matches!(self, Form::Plain | Form::Application(_))
    }

    /// Returns the column in addition to the thirteen.
    fn extra(self) -> Option<&'static str> {
        match self {
            Form::Application(Extra::DataKey) => Some(DATA_KEY),
            Form::Application(Extra::NumberCode) | Form::Iv { indexed: true } => Some(NUMBER_CODE),
            _ => None,
        }
    }

    fn key_type(self) -> &'static str {
        if matches!(self, Form::PgpSymmetric(_)) { "text" } else { "bytea" }
    }

    /// Returns the types of the columns, in order.
    fn types(self) -> impl Iterator<Item = &'static str> {
        (1..).zip(COLUMNS).map(move |(place, (_, plain))| match protected(place) {
            Some(_) if self != Form::Plain => "bytea",
            _ => plain,
        })
    }

    /// Returns statements that make an empty table.
    pub fn table(self) -> String {
        let columns = names().into_iter().zip(self.types()).chain(self.extra().map(|name| (name, "bytea")));
        let columns: Vec<String> = columns.map(|(name, kind)| format!("{name} {kind} not null")).collect();
        let index = match self.extra() {
            Some(NUMBER_CODE) => "create index on cards (number_code)",
            None if self == Form::Plain => "create index on cards (card_number1, security_code1)",
            _ => "",
        };
        format!(
            "drop table if exists cards; create table cards ({}, primary key (card_id)); {index}",
            columns.join(", ")
        )
    }

    /// Returns the insertion of a row: thirteen parameters, the application's addition, then the keys.
    pub fn insert(self) -> String {
        let kinds = if self.is_of_server() { Form::Plain } else { self }.types();
        let values = (1..).zip(kinds).map(|(place, kind)| format!("${place}::{}", bare(kind)));
        self.insert_from(values.collect(), &Keys::parameters(self, 14), self.drawn())
    }

    /// Returns the insertion of all rows in thirteen arrays, which the server encrypts or which are plain;
    /// then the keys.
    pub fn insert_all(self) -> String {
        let arrays = (1..).zip(Form::Plain.types());
        let arrays: Vec<String> = arrays.map(|(place, kind)| format!("${place}::{}[]", bare(kind))).collect();
        // The reference to the row makes the server draw a vector for each row instead of one for all.
        let drawn = match self {
            Form::Iv { .. } => {
                " cross join lateral (select gen_random_bytes(48 + 0 * r.card_id) as bytes offset 0) as drawn"
            }
            _ => "",
        };
        let from = format!(" from unnest({}) as r ({}){drawn}", arrays.join(", "), names().join(", "));
        self.insert_from(values_of_r(), &Keys::parameters(self, 14), &from)
    }

    /// Returns the source of a row's initialisation vectors. `offset 0` keeps the planner from drawing at
    /// each use.
    fn drawn(self) -> &'static str {
        match self {
            Form::Iv { .. } => " from (select gen_random_bytes(48) as bytes offset 0) as drawn",
            _ => "",
        }
    }

    fn insert_from(self, values: Vec<String>, keys: &Keys, from: &str) -> String {
        let added = self.extra().map(|name| {
            (name, if self.is_of_server() { hmac(&values[1], keys) } else { "$14::bytea".to_owned() })
        });
        let values = (1..).zip(values).map(|(place, value)| match protected(place) {
            Some(column) => self.seal(column, &value, keys),
            None => value,
        });
        let (names, values): (Vec<&str>, Vec<String>) = names().into_iter().zip(values).chain(added).unzip();
        format!("insert into cards ({}) select {}{from}", names.join(", "), values.join(", "))
    }

    fn seal(self, column: Column, value: &str, keys: &Keys) -> String {
        let key = &keys.value;
        match self {
            Form::Plain | Form::Application(_) => value.to_owned(),
            Form::PgpPublic { .. } => format!("pgp_pub_encrypt(({value})::text, {key})"),
            Form::PgpSymmetric(options) => format!("pgp_sym_encrypt(({value})::text, {key}, '{options}')"),
            Form::Iv { .. } => {
                let first = match column {
                    Column::Number => 1,
                    Column::Code => 17,
                    Column::String => 33,
                };
                let vector = format!("substr(drawn.bytes, {first}, 16)");
                format!("{vector} || encrypt_iv({}, {key}, {vector}, 'aes-cbc')", bytes_of(value))
            }
        }
    }

    fn open(self, column: Column, keys: &Keys) -> String {
        let (stored, key) = (column.name(), &keys.value);
        let text = match self {
            Form::Plain | Form::Application(_) => return stored.to_owned(),
            Form::PgpPublic { .. } => format!("pgp_pub_decrypt({stored}, {key})"),
            Form::PgpSymmetric(_) => format!("pgp_sym_decrypt({stored}, {key})"),
            Form::Iv { .. } => format!(
                "convert_from(decrypt_iv(substr({stored}, 17), {key}, substr({stored}, 1, 16), 'aes-cbc'), 'UTF8')"
            ),
        };
        match column {
            Column::Number => format!("{text}::{BIGINT}"),
            Column::Code => format!("{text}::{SMALLINT}"),
            Column::String => text,
        }
    }

    /// Returns the select list of a row: the three protected columns, the nine others, and a data key.
    fn selected(self, keys: &Keys) -> String {
        let open = |column: Column| format!("{} as {}", self.open(column, keys), column.name());
        selected(open, self.extra() == Some(DATA_KEY))
    }

    /// Returns the condition of a number, which uses an index if there is one. Without an index the search
    /// decrypts row by row, because equal numbers have unequal ciphertexts.
    fn where_number_is(self, number: &str, keys: &Keys) -> String {
        match self.extra() {
            Some(NUMBER_CODE) => format!("{NUMBER_CODE} = {}", hmac(number, keys)),
            _ => format!("{} = {number}", self.open(Column::Number, keys)),
        }
    }

    /// Returns the read of a row by id; then the key.
    pub fn read(self) -> String {
        format!("select {} from cards where card_id = $1::integer", self.selected(&Keys::parameters(self, 2)))
    }

    /// Returns the search of a row by card number, or by the application's code of it; then the keys.
    pub fn find(self) -> String {
        let keys = Keys::parameters(self, 2);
        let is_it = match self {
            Form::Application(_) => format!("{NUMBER_CODE} = $1::bytea"),
            _ => self.where_number_is("$1::bigint", &keys),
        };
        format!("select {} from cards where {is_it}", self.selected(&keys))
    }

    /// Returns the declaration of the keys, the last parameters of a function in the server.
    fn key_parameters(self) -> String {
        match self {
            Form::Iv { indexed: true } => ", value_key bytea, code_key bytea".to_owned(),
            _ if self.is_of_server() => format!(", value_key {}", self.key_type()),
            _ => String::new(),
        }
    }

    /// Returns statements that make the loops inside the server: `insert_cards`, `read_cards` and
    /// `find_cards`.
    pub fn loops(self) -> String {
        let by_number = self.where_number_is("wanted", &Keys::named());
        [
            self.insert_loop(),
            self.read_loop("read_cards", "integer", "card_id = wanted"),
            self.read_loop("find_cards", BIGINT, &by_number),
        ]
        .concat()
    }

    /// Returns the procedure of the insert loop. Its parameters are thirteen arrays, the keys, and the rows
    /// of a commit.
    fn insert_loop(self) -> String {
        let (keys, of_r) = (self.key_parameters(), names().join(", "));
        let arrays = (1..).zip(Form::Plain.types());
        let arrays: Vec<String> = arrays.map(|(place, kind)| format!("a{place} {}[]", bare(kind))).collect();
        let unnested: Vec<String> = placed().map(|(place, _)| format!("a{place}")).collect();
        let (arrays, unnested) = (arrays.join(", "), unnested.join(", "));
        let insert = self.insert_from(values_of_r(), &Keys::named(), self.drawn());
        format!(
            "create or replace procedure insert_cards({arrays}{keys}, rows_per_commit bigint)
             language plpgsql as $$
             declare
                 r record;
                 done bigint := 0;
             begin
                 for r in select * from unnest({unnested}) as r ({of_r}) loop
                     {insert};
                     done := done + 1;
                     if done % rows_per_commit = 0 then
                         commit;
                     end if;
                 end loop;
             end $$;"
        )
    }

    /// Returns the function of a read loop. Its parameters are the wanted values and the keys. Its result is
    /// the sums of the numbers and of the codes, and all strings.
    fn read_loop(self, name: &str, kind: &str, is_it: &str) -> String {
        let (keys, selected) = (self.key_parameters(), self.selected(&Keys::named()));
        let [number, code, string] = Column::ALL.map(Column::name);
        format!(
            "create or replace function {name}(
                 all_wanted {kind}[]{keys}, out numbers bigint, out codes bigint, out strings text[]
             )
             language plpgsql as $$
             declare
                 wanted {kind};
                 r record;
             begin
                 numbers := 0;
                 codes := 0;
                 strings := '{{}}';
                 foreach wanted in array all_wanted loop
                     select {selected} into strict r from cards where {is_it};
                     numbers := numbers + r.{number};
                     codes := codes + r.{code};
                     strings := array_append(strings, r.{string}::text);
                 end loop;
             end $$;"
        )
    }

    /// Returns the call of a loop inside the server, whose keys follow `before` other parameters.
    pub fn call(self, name: &str, before: usize, after: usize) -> String {
        let count = before + self.keys() + after;
        let parameters: Vec<String> = (1..=count).map(|place| format!("${place}")).collect();
        let call = if name == "insert_cards" { "call" } else { "select * from" };
        format!("{call} {name}({})", parameters.join(", "))
    }

    /// Returns the number of keys of a statement that encrypts, or finds.
    fn keys(self) -> usize {
        match self {
            Form::Iv { indexed: true } => 2,
            _ => usize::from(self.is_of_server()),
        }
    }
}

fn values_of_r() -> Vec<String> {
    names().into_iter().map(|name| format!("r.{name}")).collect()
}

fn bytes_of(value: &str) -> String {
    format!("convert_to(({value})::text, 'UTF8')")
}

fn hmac(number: &str, keys: &Keys) -> String {
    format!("hmac({}, {}, 'sha256')", bytes_of(number), keys.code)
}
