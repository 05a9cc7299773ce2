package import Support

/// A picture that was taken, in its event. A value.
package struct SnapshotDetails: Sendable, Equatable {
    package let path: StreamPath
    package let slot: Int
    package let id: String
    /// Milliseconds since 1970.
    package let takenAt: Int64
    package let bytes: Int64
    /// Pixels.
    package let width: Int
    package let height: Int

    package init(_ snapshot: SnapshotRecord) {
        self.path = snapshot.path
        self.slot = snapshot.slot
        self.id = snapshot.id
        self.takenAt = snapshot.takenAt
        self.bytes = snapshot.bytes
        self.width = snapshot.width
        self.height = snapshot.height
    }

    init(_ data: EventFields) throws(EventDataError) {
        self.path = try data.path()
        self.slot = Int(try data.number("slot"))
        self.id = try data.text("snapshotId")
        self.takenAt = try data.number("takenMs")
        self.bytes = try data.number("bytes")
        self.width = Int(try data.number("width"))
        self.height = Int(try data.number("height"))
    }

    package var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("app", self.path.app)
        data.add("name", self.path.name)
        data.add("slot", self.slot)
        data.add("snapshotId", self.id)
        data.add("takenAt", Instant.text(self.takenAt))
        data.add("takenMs", self.takenAt)
        data.add("bytes", self.bytes)
        data.add("width", self.width)
        data.add("height", self.height)
        return data
    }
}
