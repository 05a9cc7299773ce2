internal import Logging
internal import Rooms
import Support

/// Reads one kind of value from text and writes it back.
struct ConfigValueKind<Value: Sendable>: Sendable {
    let expected: String
    var isList = false
    let read: @Sendable ([String]) throws(ValueProblem) -> Value
    let write: @Sendable (Value) -> [String]?
}

extension ConfigValueKind {
    /// A value with a single text.
    init(
        _ expected: String, _ read: @escaping @Sendable (String) throws(ValueProblem) -> Value, write: @escaping @Sendable (Value) -> String
    ) {
        self.init(
            expected: expected,
            read: { (values: [String]) throws(ValueProblem) in
                guard values.count == 1 else { throw ValueProblem("is a list; expected \(expected)") }
                return try read(values[0])
            },
            write: { [write($0)] })
    }

    package static func optional<Wrapped>(_ kind: ConfigValueKind<Wrapped>) -> Self where Value == Wrapped? {
        Self(
            expected: kind.expected,
            read: { (values: [String]) throws(ValueProblem) in try kind.read(values) },
            write: { $0.flatMap(kind.write) })
    }

    package static func choice(_ type: Value.Type) -> Self where Value: RawRepresentable<String> & CaseIterable {
        let names = Value.allCases.map(\.rawValue).joined(separator: ", ")
        return Self("one of \(names)") { (text: String) throws(ValueProblem) in
            guard let choice = Value(rawValue: text.lowercased()) else {
                throw ValueProblem("\"\(text)\" is not one of \(names)")
            }
            return choice
        } write: {
            $0.rawValue
        }
    }
}

extension ConfigValueKind<HostPort> {
    package static var address: Self {
        Self(HostPort.expected, { (text: String) throws(ValueProblem) in try HostPort(parsing: text) }, write: \.description)
    }
}

extension ConfigValueKind<String> {
    /// A text that stays as it is; `check` throws unless it is right.
    fileprivate init(text expected: String, check: @escaping @Sendable (String) throws(ValueProblem) -> Void) {
        self.init(
            expected,
            { (text: String) throws(ValueProblem) in
                try check(text)
                return text
            }, write: { $0 })
    }

    /// A URL or a prefix of one, with one of these schemes. No user, no space.
    package static func url(_ schemes: String...) -> Self { self.url(schemes) }

    fileprivate static func url(_ schemes: [String]) -> Self {
        let expected = "a URL, " + schemes.map { "\($0)://…" }.joined(separator: " or ")
        return Self(text: expected) { (text: String) throws(ValueProblem) in
            guard let scheme = schemes.first(where: { text.lowercased().hasPrefix("\($0)://") }),
                let host = text.dropFirst(scheme.utf8.count + 3).first, host != "/", text.utf8.count <= 2_048,
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                // The message does not contain the value, whose query may be a credential.
                throw ValueProblem("the value, of \(text.utf8.count) bytes, is not \(expected)")
            }
            guard !text.dropFirst(scheme.utf8.count + 3).prefix(while: { $0 != "/" && $0 != "?" }).contains("@") else {
                throw ValueProblem("the URL has a user name in it; expected \(expected)")
            }
        }
    }

    /// The length is in bytes of UTF-8. No message contains the value.
    package static func secret(_ length: ClosedRange<Int>) -> Self {
        Self(text: "\(length.lowerBound) to \(length.upperBound) bytes") { (text: String) throws(ValueProblem) in
            guard length.contains(text.utf8.count) else {
                throw ValueProblem("has \(text.utf8.count) bytes; expected \(length.lowerBound) to \(length.upperBound)")
            }
        }
    }

    /// Letters and digits of ASCII.
    package static func code(_ length: ClosedRange<Int>) -> Self {
        let expected = "\(length.lowerBound) to \(length.upperBound) letters and digits"
        return Self(text: expected) { (text: String) throws(ValueProblem) in
            guard length.contains(text.utf8.count),
                text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) })
            else { throw ValueProblem("\"\(text)\" is not \(expected)") }
        }
    }

    package static var path: Self {
        Self(text: "a path") { (text: String) throws(ValueProblem) in
            guard !text.isEmpty, !text.utf8.contains(0) else { throw ValueProblem("\"\(text)\" is not a path") }
        }
    }
}

extension ConfigValueKind<Bool> {
    static var onOff: Self {
        Self("true or false") { (text: String) throws(ValueProblem) in
            switch text.lowercased() {
            case "true", "yes", "on": return true
            case "false", "no", "off": return false
            default: throw ValueProblem("\"\(text)\" is neither true nor false")
            }
        } write: {
            $0 ? "true" : "false"
        }
    }
}

extension ConfigValueKind<[String]> {
    /// A list of `most` texts at the most; `one` reads each.
    init(
        list expected: String, atMost most: Int, _ things: String, one: @escaping @Sendable (String) throws(ValueProblem) -> String
    ) {
        self.init(
            expected: expected, isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                guard values.count <= most else { throw ValueProblem("has \(values.count) \(things); expected \(most) at most") }
                return try readAll(values, one)
            },
            write: { $0 })
    }

    /// Host names, without ports.
    package static var hostNames: Self {
        Self(list: "a list of host names such as ops.example.com", atMost: 64, "names") { (value: String) throws(ValueProblem) in
            do throws(ValueProblem) {
                return try HostPort(parsing: "\(value):0").host.lowercased()
            } catch {
                throw ValueProblem("\"\(value)\" is not a host name such as ops.example.com")
            }
        }
    }

    /// Origins by name (RFC 6454 §6.2). Refuses `*`: every page could then call the API with a user's token.
    package static var origins: Self {
        Self(list: "a list of origins such as https://example.com", atMost: 64, "origins") { (value: String) throws(ValueProblem) in
            guard value != "*" else {
                throw ValueProblem("\"*\" is not an origin such as https://example.com; expected each origin by name")
            }
            return try Self.origin(value)
        }
    }

    /// The same, and `*` for all: their pages need a credential.
    package static var pageOrigins: Self {
        Self(list: "a list of origins such as https://example.com, or *", atMost: 64, "origins") { (value: String) throws(ValueProblem) in
            value == "*" ? value : try Self.origin(value)
        }
    }

    private static func origin(_ value: String) throws(ValueProblem) -> String {
        let text = value.lowercased()
        guard let scheme = ["https://", "http://"].first(where: text.hasPrefix) else {
            throw ValueProblem("\"\(value)\" is not an origin such as https://example.com")
        }
        let host = String(text.dropFirst(scheme.utf8.count))
        let hasPort = host.split(separator: "]").last?.contains(":") ?? false
        do throws(ValueProblem) {
            _ = try HostPort(parsing: hasPort ? host : "\(host):0")
        } catch {
            throw ValueProblem("\"\(value)\" is not an origin such as https://example.com or https://example.com:8443")
        }
        return text
    }

    /// Host names and IP addresses, without ports.
    package static var hosts: Self {
        Self(list: "a list of host names, or any", atMost: 64, "names") { (value: String) throws(ValueProblem) in
            guard value != "any" else { return value }
            do throws(ValueProblem) {
                _ = try HostPort(parsing: value.contains(":") ? "[\(value)]:0" : "\(value):0")
            } catch {
                throw ValueProblem("\"\(value)\" is not a host name or IP address without a port; expected e.g. live.example.com")
            }
            return value
        }
    }

    /// IP addresses, without ports.
    package static var ipAddresses: Self {
        Self(list: "a list of IP addresses", atMost: 8, "addresses") { (value: String) throws(ValueProblem) in
            guard let bytes = IPText.v4(value) ?? IPText.v6(value), bytes.contains(where: { $0 != 0 }) else {
                throw ValueProblem("\"\(value)\" is not an IP address such as 203.0.113.7 or 2001:db8::7")
            }
            return value
        }
    }

    /// Names of query parameters, other than those of signed URLs.
    package static var parameterNames: Self {
        Self(list: "a list of names such as token", atMost: 4, "names") { (value: String) throws(ValueProblem) in
            let isPlain = value.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") }
            guard isPlain, (1...32).contains(value.utf8.count) else {
                throw ValueProblem("\"\(value)\" is not the name of a parameter: 1 to 32 of A-Z a-z 0-9 _ -")
            }
            guard !["txsecret", "txtime"].contains(value.lowercased()) else { throw ValueProblem("\"\(value)\" is a part of signed URLs") }
            return value
        }
    }

    package static var urls: Self {
        let url = ConfigValueKind<String>.url(["http", "https"])
        return Self(list: "a list of URLs", atMost: 16, "URLs") { (value: String) throws(ValueProblem) in try url.read([value]) }
    }
}

extension ConfigValueKind {
    /// Values by app; `example` is one of the list's items.
    package static func byApp<One: Sendable>(_ one: ConfigValueKind<One>, example: String) -> Self where Value == NameTable<One> {
        Self(
            expected: "a list such as [\(example)]", isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                let pairs = try readAll(values) { (value: String) throws(ValueProblem) -> (String, One) in
                    let parts = value.split(separator: "=", omittingEmptySubsequences: false)
                    guard parts.count == 2, !parts[0].isEmpty else {
                        throw ValueProblem("\"\(value)\" is not app=value; expected e.g. \(example)")
                    }
                    if let problem = NameForm.problem(value) { throw ValueProblem("\"\(value)\" \(problem)") }
                    return (String(parts[0]), try one.read([String(parts[1])]))
                }
                var all: NameTable<One> = [:]
                for (app, value) in pairs { all[app] = value }
                return all
            },
            write: { $0.sorted { $0.key < $1.key }.map { "\($0.key)=\(one.write($0.value)?.joined() ?? "")" } })
    }
}

/// Reads each of a list's items. Throws the problems of all in one.
private func readAll<Item>(
    _ values: [String], _ one: (String) throws(ValueProblem) -> Item
) throws(ValueProblem) -> [Item] {
    var (items, problems): ([Item], [String]) = ([], [])
    for value in values {
        do throws(ValueProblem) { items.append(try one(value)) } catch { problems.append(error.description) }
    }
    guard problems.isEmpty else { throw ValueProblem(problems.joined(separator: "; ")) }
    return items
}

extension ConfigValueKind<[CIDR]> {
    package static var networks: Self {
        Self(
            expected: "a list of networks", isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                var networks: [CIDR] = []
                let lists = try readAll(values) { (value: String) throws(ValueProblem) in try CIDR.parseList(value) }
                for network in lists.joined() where !networks.contains(network) { networks.append(network) }
                return networks
            },
            write: { $0.map(\.description) })
    }
}

extension ConfigValueKind<Int64> {
    /// Milliseconds.
    package static func duration(_ range: ClosedRange<Int64>) -> Self {
        Self("a duration, e.g. 5s or 500ms") { (text: String) throws(ValueProblem) in
            guard let value = ConfigUnits.milliseconds(text) else {
                throw ValueProblem("\"\(text)\" is not a duration; expected e.g. 5s or 500ms")
            }
            return try within(range, value, text, ConfigUnits.duration(milliseconds:))
        } write: {
            ConfigUnits.duration(milliseconds: $0)
        }
    }
}

extension ConfigValueKind<Int> {
    /// Bytes.
    package static func size(_ range: ClosedRange<Int>) -> Self {
        Self("a size, e.g. 8MiB or 64KiB") { (text: String) throws(ValueProblem) in
            guard let value = ConfigUnits.bytes(text) else {
                throw ValueProblem("\"\(text)\" is not a size; expected e.g. 8MiB or 64KiB")
            }
            return try within(range, value, text, ConfigUnits.size(bytes:))
        } write: {
            ConfigUnits.size(bytes: $0)
        }
    }

    package static func count(_ range: ClosedRange<Int>) -> Self {
        Self("a whole number") { (text: String) throws(ValueProblem) in
            guard let value = Int(text) else { throw ValueProblem("\"\(text)\" is not a whole number") }
            return try within(range, value, text, \.description)
        } write: {
            "\($0)"
        }
    }
}

private func within<Number: Comparable>(
    _ range: ClosedRange<Number>, _ value: Number, _ text: String, _ name: (Number) -> String
) throws(ValueProblem) -> Number {
    guard range.contains(value) else {
        throw ValueProblem("\"\(text)\" is out of range; expected \(name(range.lowerBound)) to \(name(range.upperBound))")
    }
    return value
}
