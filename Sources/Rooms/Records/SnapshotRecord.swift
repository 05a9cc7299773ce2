/// An automatically taken picture of a stream, stored in a file. A value.
package struct SnapshotRecord: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let id: String
    package let path: StreamPath
    package let roomID: RoomID
    package let slot: Int
    /// Path below the pictures' folder.
    package let file: String
    /// Milliseconds since 1970.
    package let takenAt: Int64
    package let bytes: Int64
    /// Pixels.
    package let width: Int
    package let height: Int
    /// Position in lists; grows and is never reused.
    package let row: Int64

    package init(
        id: String, path: StreamPath, roomID: RoomID, slot: Int, file: String, takenAt: Int64, bytes: Int64, width: Int, height: Int,
        row: Int64 = 0
    ) {
        self.id = id
        self.path = path
        self.roomID = roomID
        self.slot = slot
        self.file = file
        self.takenAt = takenAt
        self.bytes = bytes
        self.width = width
        self.height = height
        self.row = row
    }
}

/// Limits on the pictures kept. A value.
package struct SnapshotBounds: Sendable, Equatable {
    /// Newest pictures kept of each stream.
    package let perStream: Int
    /// Bytes of all files; 0 for no limit.
    package let bytes: Int64

    package init(perStream: Int, bytes: Int64) {
        self.perStream = perStream
        self.bytes = bytes
    }
}
