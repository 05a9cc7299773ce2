package import DTLSSRTP

/// What a browser or encoder offers, or a server answers (RFC 8866, RFC 8829), as far as it matters here. A value, read by the grammar and within limits.
package struct SessionOffer: Sendable, Equatable {
    package enum Direction: String, Sendable {
        case sendrecv, sendonly, recvonly, inactive
    }

    /// An RTP payload type and its codec.
    package struct Format: Sendable, Equatable {
        package var payloadType: UInt8
        /// In lower case: "h264", "opus", "rtx", "pcmu".
        package var codec = ""
        /// Hz
        package var clockRate = 0
        package var channels = 1
        /// The parameters of its fmtp line.
        package var parameters = ""

        /// A parameter's value: "packetization-mode".
        package func parameter(_ name: String) -> String? {
            for part in self.parameters.split(separator: ";") {
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2, pair[0].filter({ $0 != " " }).lowercased() == name else { continue }
                return String(pair[1].filter { $0 != " " })
            }
            return nil
        }
    }

    /// An m-line and what belongs to it.
    package struct Media: Sendable, Equatable {
        /// "audio", "video", "application"
        package var kind: String
        package var protocolName: String
        package var port: Int
        package var mid = ""
        package var direction = Direction.sendrecv
        package var formats: [Format] = []
        package var user: String?
        package var password: String?
        package var fingerprints: [Fingerprint] = []
        package var setup: String?
        /// Payload types for which the peer takes repeats on request.
        package var nacked: Set<UInt8> = []
        /// Payload types whose packets the peer reports one by one.
        package var reported: Set<UInt8> = []
        /// The number of the header extension that counts packets of all tracks.
        package var transportNumber: UInt8?
        /// It is offered as `recvonly`.
        package var takesNumberOnly = false
        /// The number of the header extension that tells for how long pictures are to be held back.
        package var delayNumber: UInt8?
        package var takesDelayOnly = false
        /// Of UDP.
        package var candidates: [Candidate] = []
    }

    /// Where the other side may be reached: an IP address, or a name, as text.
    package struct Candidate: Sendable, Equatable {
        package var address: String
        package var port: Int
        /// It takes TCP connections (RFC 6544); otherwise it is one of UDP.
        package var isStream = false
    }

    package var media: [Media] = []
    /// The mids that share one transport.
    package var bundle: [String] = []
    package var user: String?
    package var password: String?
    package var fingerprints: [Fingerprint] = []
    package var setup: String?

    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §2.
    static let transportNumberURI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    /// The name of libwebrtc's extension: 12 bits of the least and of the most delay, in units of 10 ms.
    static let delayURI = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
    package static let longest = 64 << 10
    private static let mostLines = 4_096
    private static let mostMedia = 16
    private static let mostFormats = 128

    package init(_ text: String) throws(SessionDescriptionError) {
        guard text.utf8.count <= Self.longest else { throw .tooLong(bytes: text.utf8.count, limit: Self.longest) }
        var sawVersion = false
        var lines = 0
        for line in text.split(omittingEmptySubsequences: true, whereSeparator: { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }) {
            lines += 1
            guard lines <= Self.mostLines else { throw .tooMany("lines", limit: Self.mostLines) }
            guard let type = line.first, line.dropFirst().first == "=" else { throw .invalid(line: lines, "no \"type=value\"") }
            let value = line.dropFirst(2)
            if lines == 1 {
                guard type == "v", value == "0" else { throw .invalid(line: 1, "\"v=0\" is expected first") }
                sawVersion = true
            }
            switch type {
            case "m": try self.readMedia(value, line: lines)
            case "a": try self.readAttribute(value, line: lines)
            default: break
            }
        }
        guard sawVersion else { throw .invalid(line: 1, "\"v=0\" is expected first") }
        guard !self.media.isEmpty else { throw .missing("an m-line") }
    }

    /// RFC 8866 §5.14: `m=video 9 UDP/TLS/RTP/SAVPF 96 97`.
    private mutating func readMedia(_ value: Substring, line: Int) throws(SessionDescriptionError) {
        guard self.media.count < Self.mostMedia else { throw .tooMany("m-lines", limit: Self.mostMedia) }
        let words = value.split(separator: " ")
        guard words.count >= 4, let port = Int(words[1].split(separator: "/").first ?? ""), (0...65_535).contains(port) else {
            throw .invalid(line: line, "an m-line has a kind, a port, a protocol and formats")
        }
        var media = Media(kind: words[0].lowercased(), protocolName: String(words[2]), port: port)
        if media.kind == "audio" || media.kind == "video" {
            guard words.count - 3 <= Self.mostFormats else { throw .tooMany("formats", limit: Self.mostFormats) }
            for word in words[3...] {
                guard let number = UInt8(word), number < 128 else { throw .invalid(line: line, "a payload type is 0 to 127, not \(word)") }
                media.formats.append(Self.staticFormat(number))
            }
        }
        self.media.append(media)
    }

    /// RFC 3551 §6.
    private static func staticFormat(_ number: UInt8) -> Format {
        switch number {
        case 0: Format(payloadType: 0, codec: "pcmu", clockRate: 8_000)
        case 8: Format(payloadType: 8, codec: "pcma", clockRate: 8_000)
        default: Format(payloadType: number)
        }
    }

    private mutating func readAttribute(_ line: Substring, line number: Int) throws(SessionDescriptionError) {
        let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = pair[0]
        let value = pair.count > 1 ? pair[1] : ""
        switch name {
        case "group":
            let words = value.split(separator: " ")
            if words.first == "BUNDLE" { self.bundle = words.dropFirst().map(String.init) }
        case "ice-ufrag":
            try self.setCredential(value, line: number, lengths: 4...256) {
                $0.user = $1
            } session: {
                $0.user = $1
            }
        case "ice-pwd":
            try self.setCredential(value, line: number, lengths: 22...256) {
                $0.password = $1
            } session: {
                $0.password = $1
            }
        case "fingerprint":
            // Others than those known here prove nothing, and are left out; that one is there is checked at the end.
            guard let fingerprint = Fingerprint(value) else { return }
            if self.media.isEmpty { self.fingerprints.append(fingerprint) } else { self.edit { $0.fingerprints.append(fingerprint) } }
        case "setup": if self.media.isEmpty { self.setup = String(value) } else { self.edit { $0.setup = String(value) } }
        case "mid":
            guard value.utf8.count <= 64 else { throw .invalid(line: number, "a mid has at most 64 characters") }
            self.edit { $0.mid = String(value) }
        case "sendrecv", "sendonly", "recvonly", "inactive":
            if let direction = Direction(rawValue: String(name)) { self.edit { $0.direction = direction } }
        case "rtpmap": self.readMap(value)
        case "candidate": self.readCandidate(value)
        case "fmtp":
            let words = value.split(separator: " ", maxSplits: 1)
            guard words.count == 2, let type = UInt8(words[0]), words[1].utf8.count <= 1_024 else { return }
            self.edit(type) { $0.parameters = String(words[1]) }
        case "rtcp-fb":
            let words = value.split(separator: " ")
            let sets: [Substring: WritableKeyPath<Media, Set<UInt8>>] = ["nack": \.nacked, "transport-cc": \.reported]
            guard words.count == 2, let set = sets[words[1]] else { return }
            if words[0] == "*" {
                self.edit { $0[keyPath: set].formUnion($0.formats.map(\.payloadType)) }
            } else if let type = UInt8(words[0]) {
                self.edit { $0[keyPath: set].insert(type) }
            }
        case "extmap":
            // RFC 8285 §8: `a=extmap:4/recvonly URI`; headers of one byte number them from 1 to 14.
            let words = value.split(separator: " ")
            let place = words.first?.split(separator: "/") ?? []
            guard words.count >= 2, let number = place.first.flatMap({ UInt8($0) }), (1...14).contains(number),
                place.count == 1 || place[1] == "sendrecv" || place[1] == "recvonly"
            else { return }
            let takesOnly = place.count > 1 && place[1] == "recvonly"
            switch words[1] {
            case Self.transportNumberURI: self.edit { ($0.transportNumber, $0.takesNumberOnly) = (number, takesOnly) }
            case Self.delayURI: self.edit { ($0.delayNumber, $0.takesDelayOnly) = (number, takesOnly) }
            default: return
            }
        default: break
        }
    }

    private mutating func setCredential(
        _ value: Substring, line: Int, lengths: ClosedRange<Int>, _ set: (inout Media, String) -> Void,
        session: (inout SessionOffer, String) -> Void
    ) throws(SessionDescriptionError) {
        // RFC 8839 §5.4: ice-char.
        guard lengths.contains(value.utf8.count), value.utf8.allSatisfy({ Self.isICECharacter($0) }) else {
            throw .invalid(line: line, "ICE credentials have letters, digits, + and /, at least \(lengths.lowerBound)")
        }
        if self.media.isEmpty { session(&self, String(value)) } else { set(&self.media[self.media.count - 1], String(value)) }
    }

    private static func isICECharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
        // "=" and "-" come from clients that encode by base64.
        case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// RFC 8866 §6.6: `a=rtpmap:111 opus/48000/2`.
    private mutating func readMap(_ value: Substring) {
        let words = value.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let type = UInt8(words[0]) else { return }
        let parts = words[1].split(separator: "/")
        guard parts.count >= 2, let rate = Int(parts[1]), parts[0].utf8.count <= 32 else { return }
        self.edit(type) { format in
            format.codec = parts[0].lowercased()
            format.clockRate = rate
            format.channels = parts.count > 2 ? Int(parts[2]) ?? 1 : 1
        }
    }

    /// RFC 8839 §5.1, RFC 6544 §4.5: `a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host`, `… tcp … typ host tcptype passive`.
    private mutating func readCandidate(_ value: Substring) {
        let words = value.split(separator: " ")
        guard words.count >= 8, words[1] == "1", let port = Int(words[5]), (1...65_535).contains(port), words[4].utf8.count <= 64 else {
            return
        }
        let isStream = words[2].lowercased() == "tcp"
        guard isStream ? words.dropFirst(8).starts(with: ["tcptype", "passive"]) : words[2].lowercased() == "udp" else { return }
        self.edit { media in
            if media.candidates.count < 16 { media.candidates.append(Candidate(address: String(words[4]), port: port, isStream: isStream)) }
        }
    }

    private mutating func edit(_ change: (inout Media) -> Void) {
        guard !self.media.isEmpty else { return }
        change(&self.media[self.media.count - 1])
    }

    private mutating func edit(_ type: UInt8, _ change: (inout Format) -> Void) {
        self.edit { media in
            guard let index = media.formats.firstIndex(where: { $0.payloadType == type }) else { return }
            change(&media.formats[index])
        }
    }
}

/// Why an offer cannot be read or met.
package enum SessionDescriptionError: Error, Equatable, CustomStringConvertible {
    case tooLong(bytes: Int, limit: Int)
    case tooMany(String, limit: Int)
    case invalid(line: Int, String)
    case missing(String)
    case unsupported(String)

    package var description: String {
        switch self {
        case .tooLong(let bytes, let limit): "The offer has \(bytes) bytes; at most \(limit) are read."
        case .tooMany(let what, let limit): "The offer has more than \(limit) \(what)."
        case .invalid(let line, let why): "Line \(line) of the offer: \(why)."
        case .missing(let what): "The offer lacks \(what)."
        case .unsupported(let why): why
        }
    }
}
