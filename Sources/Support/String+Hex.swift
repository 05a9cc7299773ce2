extension String {
    /// A number in hexadecimal, with zeros before it up to so many digits.
    package init(hex number: some BinaryInteger, digits: Int, uppercase: Bool = false) {
        let text = String(number, radix: 16, uppercase: uppercase)
        self = String(repeating: "0", count: Swift.max(0, digits - text.utf8.count)) + text
    }
}
