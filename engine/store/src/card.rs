//! Rows of the table. Each is made from a seed and its id, so that a row that was read is compared with the
//! right one without storing any.

use crate::random::Sequence;

/// Characters of a row's string: all that its column can hold.
pub const STRING_BYTES: usize = 36;

pub type Text = [u8; STRING_BYTES];

/// A row. Its first number, code and string are those that a choice protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub id: i64,
    pub numbers: [i64; 4],
    pub codes: [i16; 4],
    pub strings: [Text; 4],
}

/// All rows of a table.
#[derive(Debug, Clone)]
pub struct Cards {
    seed: u64,
    /// Beginning of every protected string, for a search of the database's files.
    mark: Vec<u8>,
}

/// Least card number: 16 digits beginning with a 4, as with some issuers.
const FIRST_NUMBER: i64 = 4_000_000_000_000_000;
/// Bits of the numbers added to the least: they fit into 15 digits.
const NUMBER_BITS: u32 = 49;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -";

impl Cards {
    /// Makes rows of this seed; a mark is truncated to the string's column.
    pub fn new(seed: u64, mark: &str) -> Cards {
        let mark = mark.as_bytes();
        Cards { seed, mark: mark[..mark.len().min(STRING_BYTES)].to_vec() }
    }

    pub fn card(&self, id: i64) -> Card {
        let mut values = Sequence::of(self.seed, [id as u64, 1]);
        let mut number = || (values.draw() >> (64 - NUMBER_BITS)) as i64 + FIRST_NUMBER;
        let numbers = [self.number(id), number(), number(), number()];
        let digits = values.draw();
        let code = |place: u32| (digits >> (16 * place)) as i16 & 0xfff;
        let codes = [code(0), code(1), code(2), code(3)];
        let mut strings = std::array::from_fn(|_| string(&mut values));
        strings[0][..self.mark.len()].copy_from_slice(&self.mark);
        Card { id, numbers, codes, strings }
    }

    /// Returns the card number of a row; no other row of this seed has it.
    pub fn number(&self, id: i64) -> i64 {
        // Each step is invertible (a multiplication by an odd number, and a shift), so that two ids never
        // share a number.
        let mask = (1_u64 << NUMBER_BITS) - 1;
        let mut mixed = (id as u64).wrapping_add(self.seed) & mask;
        for factor in [0x9e37_79b9_7f4a_7c15_u64, 0xbf58_476d_1ce4_e5b9] {
            mixed ^= mixed >> (NUMBER_BITS / 2 + 1);
            mixed = mixed.wrapping_mul(factor) & mask;
        }
        FIRST_NUMBER + (mixed ^ (mixed >> (NUMBER_BITS / 2 + 1))) as i64
    }
}

fn string(values: &mut Sequence) -> Text {
    let mut text = [0; STRING_BYTES];
    // A number of 64 random bits gives six to each of nine characters.
    for part in text.chunks_mut(9) {
        let mut random = values.draw();
        for character in part {
            *character = ALPHABET[(random & 63) as usize];
            random >>= 6;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_row_is_the_same_again_and_another_one_is_another() {
        let cards = Cards::new(7, "");
        assert_eq!(cards.card(3), cards.card(3));
        assert_ne!(cards.card(3), Card { id: 3, ..cards.card(4) });
        assert_ne!(cards.card(3), Cards::new(8, "").card(3));
    }

    #[test]
    fn no_two_rows_share_a_card_number_of_sixteen_digits() {
        let cards = Cards::new(u64::MAX - 5_000, "");
        let numbers: HashSet<i64> = (1..100_000).map(|id| cards.number(id)).collect();
        assert_eq!(99_999, numbers.len());
        assert!(numbers.iter().all(|number| (FIRST_NUMBER..5_000_000_000_000_000).contains(number)));
        assert_eq!(cards.number(9), cards.card(9).numbers[0]);
    }

    #[test]
    fn a_mark_is_at_the_front_of_the_protected_string_alone() {
        let card = Cards::new(1, "a mark of 24 characters.").card(1);
        assert!(card.strings[0].starts_with(b"a mark of 24 characters."));
        assert!(!card.strings[1].starts_with(b"a mark"));
        let long = "x".repeat(50);
        assert_eq!([b'x'; STRING_BYTES], Cards::new(1, &long).card(1).strings[0]);
    }
}
