//! The tokens of a Rust file without documentation and test items, as a canonical text.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// The tokens of a Rust file.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The tokens, one a line.
    pub text: String,
    /// Names of modules in other files that exist only in tests.
    pub test_modules: Vec<String>,
}

/// Operators of several characters, whose characters must not be separated.
const OPERATORS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<<", ">>",
    "->", "=>", "::", "..",
];

/// Keywords of items that end with a block or with a semicolon, whichever is first.
const BLOCK_ITEMS: &[&str] = &["enum", "fn", "impl", "mod", "struct", "trait", "union"];
/// Words before the keyword of an item.
const MODIFIERS: &[&str] = &["async", "pub", "unsafe"];
/// Keywords of items that end with a semicolon.
const PLAIN_ITEMS: &[&str] = &["const", "let", "static", "type", "use"];

impl Tokens {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Self, LexError> {
        let mut tokens = Self::default();
        tokens.append(text.parse()?);
        Ok(tokens)
    }

    fn append(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < trees.len() {
            if let Some(end) = attribute(&trees, at) {
                if is_documentation(&trees, end) {
                    at = end;
                    continue;
                }
                if is_test(&trees, end)
                    && let Some(after) = item_end(&trees, end)
                {
                    self.test_modules.extend(module_elsewhere(&trees[end..after]));
                    at = after;
                    continue;
                }
            }
            self.append_tree(&trees[at], trees.get(at + 1));
            at += 1;
        }
    }

    fn append_tree(&mut self, tree: &TokenTree, next: Option<&TokenTree>) {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                self.append_line(open);
                self.append(group.stream());
                self.append_line(close);
            }
            TokenTree::Punct(punct) => {
                self.text.push(punct.as_char());
                // Whether other characters touch is a matter of layout.
                let is_operator = match next {
                    Some(TokenTree::Punct(next)) if punct.spacing() == Spacing::Joint => {
                        OPERATORS.contains(&&*format!("{}{}", punct.as_char(), next.as_char()))
                    }
                    // A lifetime.
                    Some(TokenTree::Ident(_)) => punct.as_char() == '\'',
                    _ => false,
                };
                if !is_operator {
                    self.text.push('\n');
                }
            }
            other => self.append_line(&other.to_string()),
        }
    }

    fn append_line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }
}

/// Returns the position after the attribute that begins at `at`, if there is one.
fn attribute(trees: &[TokenTree], at: usize) -> Option<usize> {
    let is = |at: usize, sign| matches!(trees.get(at), Some(TokenTree::Punct(it)) if it.as_char() == sign);
    let is_list = |at: usize| match trees.get(at) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Bracket,
        _ => false,
    };
    if !is(at, '#') {
        None
    } else if is_list(at + 1) {
        Some(at + 2)
    } else {
        (is(at + 1, '!') && is_list(at + 2)).then_some(at + 3)
    }
}

/// Returns the text of the attribute that ends before `end`, without whitespace.
fn content(trees: &[TokenTree], end: usize) -> String {
    let TokenTree::Group(list) = &trees[end - 1] else { return String::new() };
    list.stream().to_string().split_whitespace().collect()
}

fn is_documentation(trees: &[TokenTree], end: usize) -> bool {
    let TokenTree::Group(list) = &trees[end - 1] else { return false };
    matches!(list.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

fn is_test(trees: &[TokenTree], end: usize) -> bool {
    ["cfg(test)", "test"].contains(&&*content(trees, end))
}

/// Returns the position after the item at `at`; `None` if the kind of item is not recognised.
fn item_end(trees: &[TokenTree], mut at: usize) -> Option<usize> {
    while let Some(end) = attribute(trees, at) {
        at = end;
    }
    let rest = &trees[at..];
    let is_before_keyword = |tree: &TokenTree| match tree {
        TokenTree::Ident(name) => MODIFIERS.iter().any(|modifier| name == modifier),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    };
    let mut words =
        rest.iter().skip_while(|tree| is_before_keyword(tree)).map_while(|tree| match tree {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        });
    let (keyword, next) = (words.next()?, words.next());
    let is_function =
        keyword == "const" && next.is_some_and(|next| MODIFIERS.contains(&&*next) || next == "fn");
    let has_block = is_function || BLOCK_ITEMS.contains(&&*keyword);
    if !has_block && !PLAIN_ITEMS.contains(&&*keyword) {
        return None;
    }
    let is_end = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => has_block && group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    rest.iter().position(is_end).map(|length| at + length + 1)
}

/// Returns the name of a module that an item declares without its text.
fn module_elsewhere(item: &[TokenTree]) -> Option<String> {
    let [.., TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Punct(_)] = item else {
        return None;
    };
    (keyword == "mod").then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        Tokens::parse(source).unwrap().text
    }

    #[test]
    fn layout_and_documentation_are_not_part_of_the_text() {
        let one = "fn f(x: Option<u8>) -> Option<u8> { Some(x?.min(1)) }";
        let other = "/// Doc.\n#[doc(hidden)]\nfn f(\n x: Option<u8>)
            -> Option<u8>\n{ // why\nSome(x?\n.min(1)) }";
        assert_eq!(text(one), text(other));
        let parameters = "p! { /// A.\n pub struct C { /// B.\n pub x: u8 = 1; } }";
        assert_eq!(text(parameters), text("p! { pub struct C { pub x: u8 = 1; } }"));
    }

    #[test]
    fn different_code_has_a_different_text() {
        let different = [
            "fn f() { a && b }",
            "fn f() { a & &b }",
            "fn f() { a & b }",
            "fn f() { \"a\" }",
            "fn f() { 'a' }",
            "fn f() { a }",
            "fn f<'a>() {}",
            "fn f() { a. . b }",
            "fn f() { a.b }",
            "fn f() { a..b }",
            "#[cfg(feature = \"x\")] fn f() { a }",
            "fn f() { 1.0 }",
            "fn f() { 1 }",
            "fn f() { -1 }",
        ];
        for (number, one) in different.iter().enumerate() {
            for other in &different[..number] {
                assert_ne!(text(one), text(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn items_of_tests_are_left_out() {
        let base = "fn f() {} fn g() {}";
        let items = [
            "#[cfg(test)] mod tests { fn h() {} }",
            "#[cfg(test)] mod tests;",
            "#[cfg(test)] use a::{b, c};",
            "#[cfg(test)] #[expect(x)] pub(crate) fn h() -> [u8; 2] { [1; 2] }",
            "#[cfg(test)] pub const X: [u8; 2] = [1; 2];",
            "#[cfg(test)] pub const fn h() -> u8 { 1 }",
            "#[test] fn h() {}",
        ];
        for item in items {
            assert_eq!(text(&format!("fn f() {{}} {item} fn g() {{}}")), text(base), "{item}");
        }
        assert_eq!(Tokens::parse("#[cfg(test)] pub mod tests;").unwrap().test_modules, ["tests"]);
        // The attribute of a field is kept with the field.
        assert!(text("struct S { #[cfg(test)] x: u8, y: u8 }").contains('x'));
    }
}
