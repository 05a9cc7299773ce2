import HTTPAPI
import Support

/// Building blocks for the schemas of events' data.
extension Schema {
    static let text = OutputType<String>.text.schema
    static let instant = OutputType<Int64>.instant.schema
    static let count = OutputType<Int64>.count.schema
    static let flag = OutputType<Bool>.flag.schema
    static let integer = Schema.keywords("integer")
    /// An integer from 1.
    static let natural = Schema.keywords("integer", ("minimum", 1))

    static func choice<Word: RawRepresentable<String>>(of words: [Word]) -> Schema { .words(words.map(\.rawValue)) }

    static func numbers(_ numbers: [Int]) -> Schema {
        .keywords("integer", ("enum", .array(Set(numbers).sorted().map { .integer(Int64($0)) })))
    }

    /// Text with a typical example.
    static func example(_ text: String) -> Schema { .keywords("string", ("examples", [.string(text)])) }
}

extension Schema.Property {
    /// A member that is always there.
    static func always(_ name: String, _ schema: Schema, _ help: String) -> Schema.Property {
        Schema.Property(name: name, schema: schema, help: help, isRequired: true)
    }

    /// A member that is absent when it has no value; events have no null.
    static func maybe(_ name: String, _ schema: Schema, _ help: String) -> Schema.Property {
        Schema.Property(name: name, schema: schema, help: help, isRequired: false)
    }

    /// The same member as part of a group whose members are either all present or all absent.
    func sometimes(_ group: String) -> Schema.Property {
        Schema.Property(name: self.name, schema: self.schema, help: self.help, isRequired: false, group: group)
    }
}
