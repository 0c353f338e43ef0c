//! The columns that are protected, and their values as they are stored.

/// The three columns that a choice protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Number,
    Code,
    String,
}

impl Column {
    pub const ALL: [Column; 3] = [Column::Number, Column::Code, Column::String];

    pub fn name(self) -> &'static str {
        match self {
            Column::Number => "card_number1",
            Column::Code => "security_code1",
            Column::String => "secure_string1",
        }
    }

    /// Its place in the table, from 1: what a value is bound to besides its row.
    pub fn place(self) -> u8 {
        match self {
            Column::Number => 2,
            Column::Code => 6,
            Column::String => 10,
        }
    }
}

/// What the application adds to a row beside its thirteen columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Nothing,
    /// A column `data_key`.
    DataKey,
    /// A column `number_code`, indexed: by it a row is found.
    NumberCode,
}

/// The three protected values as they were read.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// As they are, or as a server that encrypts itself gave them back.
    Plain { number: i64, code: i16, string: &'a [u8] },
    /// As the application sealed them.
    Sealed { number: &'a [u8], code: &'a [u8], string: &'a [u8], extra: &'a [u8] },
}
