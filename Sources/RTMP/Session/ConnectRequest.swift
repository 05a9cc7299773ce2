/// The contents of a client's `connect` (RTMP 1.0 §7.2.1.1). Enhanced RTMP v2, "Enhancing NetConnection connect Command", adds fields. A
/// plain value.
package struct ConnectRequest: Sendable, Equatable {
    /// As sent, query included: holds credentials, never log it.
    package var app: String
    package var tcUrl: String
    package var flashVersion: String
    /// 0 or 3.
    package var objectEncoding: Double
    /// Enhanced RTMP capability bits: reconnect 1, multitrack 2, ModEx 4, nanosecond offset 8.
    package var capsEx: Int
    /// Whether the client reads Multitrack messages.
    package var acceptsTracks: Bool { self.capsEx & 2 != 0 }
    /// FourCCs, or "*"; at most ``fourCCLimit``.
    package var fourCCs: [String]
    /// Whether the client plays Opus: `audioFourCcInfoMap` says so by the bit for decoding; only without that map is `fourCcList` enough, which also
    /// lists what a client merely encodes.
    package var decodesOpus: Bool
    /// Whether the client sent any Enhanced RTMP field; only then does the answer have some.
    package var isEnhanced: Bool
    package var transaction: Double
    /// Whether the client announces a publish: type "nonprivate", as from FMLE, ffmpeg, librtmp and GStreamer.
    package var announcesPublish: Bool
    /// The marks that another Earshot server sends to prevent loops; nil from other peers. A link that pushes sends the path its stream has
    /// taken, one that pulls the streams it will feed.
    package var earshotPath: String?

    /// Bytes of a text kept for the connection's life, for display only.
    private static let shownBytes = 1_024
    private static let pathBytes = 2_048
    /// Codecs that a client may name. They are kept for the connection's life, so longer texts and further ones are dropped.
    private static let fourCCLimit = 64

    init(_ command: Command) {
        let object = command.object
        let tcUrl = object["tcUrl"]?.string ?? ""
        self.tcUrl = Self.clip(tcUrl)
        self.app = object["app"]?.string ?? Self.app(inURL: tcUrl)
        self.flashVersion = Self.clip(object["flashVer"]?.string ?? "")
        self.objectEncoding = object["objectEncoding"]?.number == 3 ? 3 : 0
        // A peer's double may be anything; only 0…65,535 is read as capability bits.
        self.capsEx = object["capsEx"]?.number.flatMap { $0 >= 0 && $0 < 65536 ? Int($0) : nil } ?? 0
        var fourCCs: [String] = []
        if case .strictArray(let list) = object["fourCcList"] ?? .null { fourCCs = list.compactMap(\.string) }
        for map in ["videoFourCcInfoMap", "audioFourCcInfoMap"] {
            switch object[map] ?? .null {
            case .object(let entries), .ecmaArray(let entries): fourCCs += entries.filter(Self.accepts).map(\.name)
            default: break
            }
        }
        self.fourCCs = Array(fourCCs.lazy.filter { $0.utf8.count <= 4 }.prefix(Self.fourCCLimit))
        switch object["audioFourCcInfoMap"] ?? .null {
        case .object(let entries), .ecmaArray(let entries):
            let opus = entries.first { $0.name == "Opus" } ?? entries.first { $0.name == "*" }
            self.decodesOpus = opus.flatMap(Self.mask).map { $0 & 1 != 0 } ?? false
        default: self.decodesOpus = self.fourCCs.contains { $0 == "Opus" || $0 == "*" }
        }
        self.isEnhanced = ["capsEx", "fourCcList", "videoFourCcInfoMap", "audioFourCcInfoMap"].contains { object[$0] != nil }
        self.transaction = command.transaction
        self.announcesPublish = object["type"]?.string == "nonprivate"
        self.earshotPath = object["earshotPath"]?.string.flatMap { $0.utf8.count <= Self.pathBytes ? $0 : nil }
    }

    /// Whether the client accepts this codec. FourCcInfoMask: 1 decodes it, 2 encodes it, 4 forwards it; encoding alone is not enough.
    private static func accepts(_ entry: AMF0Property) -> Bool { entry.value.number == nil || (Self.mask(entry) ?? 0) & 5 != 0 }

    /// Nil unless it is a number from 0 to 65,535.
    private static func mask(_ entry: AMF0Property) -> Int? { entry.value.number.flatMap { $0 >= 0 && $0 < 65_536 ? Int($0) : nil } }

    private static func clip(_ text: String) -> String {
        text.utf8.count <= self.shownBytes ? text : String(decoding: text.utf8.prefix(self.shownBytes), as: UTF8.self)
    }

    /// Some encoders send no app; take it from the path of tcUrl.
    private static func app(inURL url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        let rest = url[scheme.upperBound...]
        guard let slash = rest.firstIndex(of: "/") else { return "" }
        return String(rest[rest.index(after: slash)...])
    }
}
