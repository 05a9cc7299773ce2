import RTMP
import Trace

/// A command's name and arguments for a trace. Shows values known to be harmless, and only the type of all others.
enum CommandText {
    /// Commands whose first argument is the name of a stream.
    private static let naming: Set<String> = [
        "publish", "play", "play2", "releaseStream", "FCPublish", "FCUnpublish", "FCSubscribe", "FCUnsubscribe", "getStreamLength",
    ]
    /// Other commands whose numbers and flags may be shown.
    private static let known: Set<String> = naming.union([
        "connect", "createStream", "deleteStream", "closeStream", "close", "pause", "pauseRaw", "seek", "receiveAudio", "receiveVideo",
        "setPlaybackLength", "_checkbw", "checkBandwidth", "_result", "_error", "onStatus", "onBWDone", "onFCPublish", "onFCUnpublish",
        "onFCSubscribe", "onFCUnsubscribe",
    ])
    /// Commands that answer: their objects have a code.
    private static let answers: Set<String> = [
        "_result", "_error", "onStatus", "onFCPublish", "onFCSubscribe", "onFCUnpublish", "onFCUnsubscribe",
    ]
    /// Properties of `connect` (RTMP 1.0 §7.2.1.1): addresses, and others that may be shown.
    private static let addresses: Set<String> = ["app", "tcUrl", "swfUrl", "pageUrl"]
    private static let plain: Set<String> = [
        "flashVer", "type", "objectEncoding", "audioCodecs", "videoCodecs", "videoFunction", "capabilities", "fpad", "capsEx",
    ]
    private static let mostProperties = 24
    private static let mostArguments = 8

    static func name(_ name: String) -> String {
        if name.isEmpty { return "unnamed" }
        return self.known.contains(name) || TraceRedaction.isName(name) ? name : "unknown(\(name.utf8.count))"
    }

    static func arguments(_ command: Command, _ direction: TraceDirection) -> String {
        if command.name == "connect" { return self.connect(command) }
        if self.answers.contains(command.name) { return self.answer(command, direction) }
        let isKnown = self.known.contains(command.name)
        var words = command.arguments.prefix(self.mostArguments).map { isKnown ? self.scalar($0) : self.type(of: $0) }
        if self.naming.contains(command.name), let name = command.string(at: 0) { words[0] = TraceRedaction.address(name) }
        if command.name == "publish", let kind = command.string(at: 1), ["live", "record", "append"].contains(kind) { words[1] = kind }
        if command.arguments.count > self.mostArguments { words.append("…") }
        return words.joined(separator: " ")
    }

    private static func connect(_ command: Command) -> String {
        let properties = command.object.properties ?? []
        var words = properties.prefix(self.mostProperties).map { property in
            let name = property.name
            guard TraceRedaction.isName(name) else { return TraceRedaction.hidden }
            if self.addresses.contains(name), let text = property.value.string { return "\(name)=\(TraceRedaction.address(text))" }
            if self.plain.contains(name) {
                if let text = property.value.string { return "\(name)=\(TraceRedaction.plain(text))" }
                return "\(name)=\(self.scalar(property.value))"
            }
            return "\(name)=\(self.type(of: property.value))"
        }
        if properties.count > self.mostProperties { words.append("…") }
        // Flash servers expect user and password here, so only types are shown.
        words += command.arguments.prefix(self.mostArguments).map(self.type)
        return words.joined(separator: " ")
    }

    /// The status in an answer. Descriptions are shown only for this server's refusals, except of an unknown command, since that one repeats the
    /// command's name.
    private static func answer(_ command: Command, _ direction: TraceDirection) -> String {
        guard let status = ([command.object] + command.arguments).lazy.compactMap({ Status($0) }).first else {
            return command.arguments.prefix(self.mostArguments).map(self.scalar).joined(separator: " ")
        }
        guard direction == .sent else {
            let isCode = status.code.utf8.count <= 64 && status.code.split(separator: ".").allSatisfy { TraceRedaction.isName(String($0)) }
            return isCode ? status.code : TraceRedaction.hidden
        }
        guard status.level == .error, status.code != StatusCode.callFailed else { return status.code }
        return "\(status.code): \(TraceRedaction.clean(status.description))"
    }

    private static func scalar(_ value: AMF0Value) -> String {
        if let number = value.number {
            return number == number.rounded() && abs(number) < 1e15 ? "\(Int64(number))" : "\(number)"
        }
        if let flag = value.boolean { return "\(flag)" }
        return self.type(of: value)
    }

    private static func type(of value: AMF0Value) -> String {
        switch value {
        case .number: "number"
        case .boolean: "boolean"
        case .string(let text), .longString(let text): "string(\(text.utf8.count))"
        case .null: "null"
        case .undefined: "undefined"
        case .object(let properties), .typedObject(_, let properties): "object(\(properties.count))"
        case .ecmaArray(let properties): "array(\(properties.count))"
        case .strictArray(let values): "array(\(values.count))"
        case .date: "date"
        case .xmlDocument: "xml"
        case .avmPlus: "amf3"
        case .reference, .unsupported: "other"
        }
    }
}
