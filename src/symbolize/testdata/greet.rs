// Test program: a Rust function and a method, both kept out of line.
struct Greeter {
    name: String,
}

impl Greeter {
    #[inline(never)]
    fn greet(&self) -> String {
        format!("hello {}", self.name)
    }
}

#[inline(never)]
fn make_greeter(name: &str) -> Greeter {
    Greeter { name: name.to_string() }
}

fn main() {
    println!("{}", make_greeter("rust").greet());
}
