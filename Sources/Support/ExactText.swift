/// Text whose identity is its UTF-8 bytes, for names and identities: Swift's own `==` also takes other spellings of the same characters for equal.
///
/// ``NameForm`` lets one spelling in; this is the second line of defence. A type whose identity is a name wraps the name in it
/// (`@ExactText package var name: String`) and compares by bytes. A value; any thread.
@propertyWrapper
package struct ExactText: Hashable, Sendable, CustomStringConvertible {
    package let wrappedValue: String

    package init(wrappedValue text: String) { self.wrappedValue = text }

    package static func == (left: ExactText, right: ExactText) -> Bool {
        let (one, other) = (left.wrappedValue.utf8, right.wrappedValue.utf8)
        return one.count == other.count && one.elementsEqual(other)
    }

    package func hash(into hasher: inout Hasher) {
        var text = self.wrappedValue
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // Keeps two names in a row apart from one that joins them.
        hasher.combine(UInt8.max)
    }

    package var description: String { self.wrappedValue }
}

extension String {
    /// For comparing names: `one.exact == other.exact`.
    package var exact: ExactText { ExactText(wrappedValue: self) }
}

/// A dictionary by name, whose keys are compared by their bytes. A value.
package struct NameTable<Value>: Sequence, ExpressibleByDictionaryLiteral {
    private var rows: [ExactText: Value]

    package init(dictionaryLiteral elements: (String, Value)...) {
        self.rows = [:]
        for (name, value) in elements { self.rows[name.exact] = value }
    }

    private init(rows: [ExactText: Value]) { self.rows = rows }

    package var count: Int { self.rows.count }
    package var isEmpty: Bool { self.rows.isEmpty }
    package var keys: some Collection<String> { self.rows.keys.lazy.map(\.wrappedValue) }
    package var values: Dictionary<ExactText, Value>.Values { self.rows.values }

    package subscript(_ name: String) -> Value? {
        get { self.rows[name.exact] }
        _modify { yield &self.rows[name.exact] }
    }

    package subscript(_ name: String, default value: @autoclosure () -> Value) -> Value {
        get { self.rows[name.exact, default: value()] }
        _modify { yield &self.rows[name.exact, default: value()] }
    }

    @discardableResult
    package mutating func removeValue(forKey name: String) -> Value? { self.rows.removeValue(forKey: name.exact) }

    package func filter(_ isIncluded: ((key: String, value: Value)) throws -> Bool) rethrows -> NameTable {
        NameTable(rows: try self.rows.filter { try isIncluded(($0.key.wrappedValue, $0.value)) })
    }

    package func makeIterator() -> Iterator { Iterator(rows: self.rows.makeIterator()) }

    package struct Iterator: IteratorProtocol {
        fileprivate var rows: Dictionary<ExactText, Value>.Iterator

        package mutating func next() -> (key: String, value: Value)? { self.rows.next().map { ($0.key.wrappedValue, $0.value) } }
    }
}

extension NameTable: Sendable where Value: Sendable {}
extension NameTable: Equatable where Value: Equatable {}
