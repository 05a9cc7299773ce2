internal import Logging

/// One setting of a server. The table `all` drives reading (file, environment, flags), checking and printing.
package struct ConfigSetting: Sendable {
    /// Dotted, as in the file: `relay.gopCache.maxBytes`.
    package let path: String
    /// One line.
    package let help: String
    /// The command-line flag that stands for it, if it has one of its own.
    package let flag: String?
    /// What is accepted, for a message: `a duration; expected e.g. 5s or 500ms`.
    let expected: String
    let isList: Bool
    /// Refuses by throwing `ValueProblem`, and changes nothing then.
    let assign: @Sendable (_ values: [String], _ config: inout ServerConfig) throws(ValueProblem) -> Void
    /// The value as `assign` takes it; nil when unset.
    let values: @Sendable (ServerConfig) -> [String]?

    /// `EARSHOT_` and the path in capitals, words apart: `EARSHOT_RELAY_GOP_CACHE_MAX_BYTES`.
    package var environmentName: String {
        "EARSHOT_"
            + path.reduce(into: "") { name, character in
                if character.isUppercase { name += "_" }
                name += character == "." ? "_" : character.uppercased()
            }
    }

    /// As flags are told of in messages.
    var flagName: String { flag ?? path }
}

// MARK: - The table

extension ConfigSetting {
    private static let day: Int64 = 86_400_000
    private static let message = 1_024...(64 << 20)

    package static let all: [ConfigSetting] = [
        .make("rtmp.listen", \.rtmp.listen, .address, "Where to listen for RTMP.", flag: "--rtmp"),
        .make(
            "rtmps.listen", \.rtmps.listen, .optional(.address), "Where to listen for RTMPS; 127.0.0.1:1936 once a certificate is set."),
        .make("rtmps.certificate", \.rtmps.certificate, .optional(.path), "PEM file: the certificate, then its chain. Turns RTMPS on."),
        .make("rtmps.key", \.rtmps.key, .optional(.path), "PEM file: the certificate's private key."),
        .make("http.listen", \.http.listen, .address, "Where to listen for HTTP: API and health checks.", flag: "--http"),
        .make("data.directory", \.data.directory, .path, "Folder for what is kept on disk.", flag: "--data"),

        .make("access.publishFrom", \.access.publishFrom, .networks, "Addresses that may push."),
        .make("access.playFrom", \.access.playFrom, .networks, "Addresses that may play."),
        .make("access.apiFrom", \.access.apiFrom, .networks, "Addresses that may call the HTTP API."),

        .make(
            "relay.grace.brokenPipe", \.relay.grace.brokenPipeMs, .duration(1...day),
            "How long viewers wait for a publisher whose connection broke."),
        .make(
            "relay.grace.cleanStop", \.relay.grace.cleanStopMs, .duration(1...day),
            "How long viewers wait for a publisher that said it was done."),
        .make(
            "relay.grace.mediaIdle", \.relay.grace.mediaIdleMs, .duration(1...day),
            "How long a connected publisher may send nothing."),
        .make("relay.maxBehind", \.relay.maxBehindMs, .duration(100...day), "A viewer further behind live than this is disconnected."),
        .make(
            "relay.skipBehind", \.relay.skipBehindMs, .duration(50...day),
            "A viewer further behind live than this skips video to the next keyframe."),
        .make(
            "relay.gopCache.maxBytes", \.relay.gopCache.maxBytes, .size((64 << 10)...(1 << 30)),
            "Cached video and audio since the last keyframe, per stream."),
        .make("relay.gopCache.maxDuration", \.relay.gopCache.maxDurationMs, .duration(100...600_000), "The same, in time."),
        .make(
            "relay.coalesce", \.relay.coalesceMs, .duration(0...1_000), "Gather messages this long before sending; 0s sends each at once."),

        .make("limits.handshake", \.limits.handshakeMs, .duration(100...day), "Time for the handshake."),
        .make("limits.connect", \.limits.connectMs, .duration(100...day), "Time from the handshake to the connect command."),
        .make("limits.firstMedia", \.limits.firstMediaMs, .duration(100...day), "Time from publish to the first audio or video."),
        .make("limits.videoMessage", \.limits.videoMessageBytes, .size(message), "Largest video message."),
        .make("limits.audioMessage", \.limits.audioMessageBytes, .size(message), "Largest audio message."),
        .make("limits.dataMessage", \.limits.dataMessageBytes, .size(message), "Largest data or command message."),
        .make("limits.partialMessages", \.limits.partialMessages, .count(1...65_600), "Unfinished messages per connection."),
        .make("limits.partialBytes", \.limits.partialBytes, .size(message), "Bytes of unfinished messages per connection."),
        .make("limits.streamName", \.limits.streamNameBytes, .size(1...4_096), "Longest app or stream name."),
        .make("limits.connections", \.limits.connections, .count(1...1_000_000), "RTMP and RTMPS connections at a time."),
        .make("limits.connectionsPerAddress", \.limits.connectionsPerAddress, .count(1...1_000_000), "The same, from one address."),
        .make("limits.viewersPerStream", \.limits.viewersPerStream, .count(1...1_000_000), "Viewers of one stream at a time."),
        .make("limits.publishersTotal", \.limits.publishersTotal, .count(1...1_000_000), "Publishers at a time."),

        .make("log.level", \.log.level, .choice(Logger.Level.self), "Least severe message that is logged."),
        .make("log.format", \.log.format, .choice(ServerConfig.Log.Format.self), "Lines of text, or of JSON."),
    ]

    package static let byPath = Dictionary(uniqueKeysWithValues: all.map { ($0.path, $0) })
    static let byEnvironmentName = Dictionary(uniqueKeysWithValues: all.map { ($0.environmentName, $0) })

    /// Dotted paths that hold settings: `relay`, `relay.grace`, …
    static let sections: Set<String> = Set(
        all.flatMap { setting in
            let parts = setting.path.split(separator: ".")
            return (1..<parts.count).map { parts[..<$0].joined(separator: ".") }
        })
}

// MARK: - Kinds of value

/// How one kind of value is read from text and written back.
struct ConfigValueKind<Value: Sendable>: Sendable {
    let expected: String
    var isList = false
    let read: @Sendable ([String]) throws(ValueProblem) -> Value
    let write: @Sendable (Value) -> [String]?
}

extension ConfigValueKind {
    /// A value of one word.
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

    static func optional<Wrapped>(_ kind: ConfigValueKind<Wrapped>) -> Self where Value == Wrapped? {
        Self(
            expected: kind.expected,
            read: { (values: [String]) throws(ValueProblem) in try kind.read(values) },
            write: { $0.flatMap(kind.write) })
    }

    static func choice(_ type: Value.Type) -> Self where Value: RawRepresentable<String> & CaseIterable {
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
    static var address: Self {
        Self(HostPort.expected, { (text: String) throws(ValueProblem) in try HostPort(parsing: text) }, write: \.description)
    }
}

extension ConfigValueKind<String> {
    static var path: Self {
        Self("a path") { (text: String) throws(ValueProblem) in
            guard !text.isEmpty, !text.utf8.contains(0) else { throw ValueProblem("\"\(text)\" is not a path") }
            return text
        } write: {
            $0
        }
    }
}

extension ConfigValueKind<[CIDR]> {
    static var networks: Self {
        Self(
            expected: "a list of networks", isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                var networks: [CIDR] = []
                for value in values {
                    for network in try CIDR.parseList(value) where !networks.contains(network) { networks.append(network) }
                }
                return networks
            },
            write: { $0.map(\.description) })
    }
}

extension ConfigValueKind<Int64> {
    /// Milliseconds.
    static func duration(_ range: ClosedRange<Int64>) -> Self {
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
    static func size(_ range: ClosedRange<Int>) -> Self {
        Self("a size, e.g. 8MiB or 64KiB") { (text: String) throws(ValueProblem) in
            guard let value = ConfigUnits.bytes(text) else {
                throw ValueProblem("\"\(text)\" is not a size; expected e.g. 8MiB or 64KiB")
            }
            return try within(range, value, text, ConfigUnits.size(bytes:))
        } write: {
            ConfigUnits.size(bytes: $0)
        }
    }

    static func count(_ range: ClosedRange<Int>) -> Self {
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

extension ConfigSetting {
    private static func make<Value: Sendable>(
        _ path: String, _ keyPath: any WritableKeyPath<ServerConfig, Value> & Sendable, _ kind: ConfigValueKind<Value>, _ help: String,
        flag: String? = nil
    ) -> ConfigSetting {
        ConfigSetting(
            path: path, help: help, flag: flag, expected: kind.expected, isList: kind.isList,
            assign: { (values: [String], config: inout ServerConfig) throws(ValueProblem) in
                config[keyPath: keyPath] = try kind.read(values)
            },
            values: { kind.write($0[keyPath: keyPath]) })
    }
}
