/// Integer literals as text, in any of the four notations.
enum Literal {
    /// The literals of one more, and of one less unless that is negative. Empty if no `Int` can hold the value or one more.
    static func neighbours(of text: String) -> [String] {
        let digits = text.filter { $0 != "_" }
        let prefixes = ["0x": 16, "0b": 2, "0o": 8]
        let prefix = String(digits.prefix(2))
        let radix = prefixes[prefix] ?? 10
        guard let value = Int(prefixes[prefix] == nil ? digits : String(digits.dropFirst(2)), radix: radix), value < .max else { return [] }
        let written = { (value: Int) in (prefixes[prefix] == nil ? "" : prefix) + String(value, radix: radix, uppercase: true) }
        return value == 0 ? [written(1)] : [written(value + 1), written(value - 1)]
    }
}
