package import Support

/// A push, in the events of its begin and end. A value.
package struct PushDetails: Sendable, Equatable {
    package let path: StreamPath
    package let slot: Int
    package let sequence: Int64
    /// With the port.
    package let clientAddress: String
    /// The URL's query without credentials.
    package let parameters: String
    package let media: MediaSummary
    /// Nil while it has not ended.
    package let end: End?

    package struct End: Sendable, Equatable {
        /// Milliseconds since the first media.
        package let durationMs: Int64
        /// Nil for a reason that only another version knows.
        package let reason: PushEnd?
        package let code: Int
        package let subcode: Int?

        package init(_ end: PushEnd, durationMs: Int64) {
            self.durationMs = durationMs
            self.reason = end
            self.code = end.code
            self.subcode = end.subcode
        }

        fileprivate init(_ data: EventFields) throws(EventDataError) {
            self.durationMs = try data.optionalNumber("durationMs") ?? 0
            self.reason = try data.optionalText("end").flatMap(PushEnd.init(rawValue:))
            self.code = Int(try data.optionalNumber("code") ?? 0)
            self.subcode = try data.optionalNumber("subcode").map { Int($0) }
        }
    }

    package init(
        path: StreamPath, slot: Int, sequence: Int64, clientAddress: String, parameters: String, media: MediaSummary, end: End? = nil
    ) {
        self.path = path
        self.slot = slot
        self.sequence = sequence
        self.clientAddress = clientAddress
        self.parameters = parameters
        self.media = media
        self.end = end
    }

    init(_ data: EventFields, hasEnded: Bool) throws(EventDataError) {
        self.path = try data.path()
        self.slot = Int(try data.number("slot"))
        self.sequence = try data.number("sequence")
        self.clientAddress = try data.text("clientAddress")
        self.parameters = try data.text("parameters")
        self.media = try data.media()
        self.end = hasEnded ? try End(data) : nil
    }

    package var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("app", self.path.app)
        data.add("name", self.path.name)
        data.add("slot", self.slot)
        data.add("sequence", self.sequence)
        data.add("clientAddress", self.clientAddress)
        data.add("parameters", self.parameters)
        data += self.media.members
        if let end = self.end {
            data.add("durationMs", end.durationMs)
            data.add("end", end.reason?.rawValue)
            data.add("code", end.code)
            data.add("subcode", end.subcode)
        }
        return data
    }
}
