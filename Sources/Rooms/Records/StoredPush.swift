/// A push as stored. Times are in milliseconds since 1970. A value.
package struct StoredPush: Sendable, Equatable {
    package let sequence: Int64
    package let path: StreamPath
    package let roomID: RoomID
    package let slot: Int
    package let clientAddress: String
    package let parameters: String
    package let startedAt: Int64
    package var mediaAt: Int64?
    package var endedAt: Int64?
    package var end: PushEnd?
    package var media = MediaSummary()

    package init(
        sequence: Int64, path: StreamPath, roomID: RoomID, slot: Int, clientAddress: String, parameters: String, startedAt: Int64
    ) {
        self.sequence = sequence
        self.path = path
        self.roomID = roomID
        self.slot = slot
        self.clientAddress = clientAddress
        self.parameters = parameters
        self.startedAt = startedAt
    }

    /// The push's details for its events.
    package func details(_ end: PushDetails.End? = nil) -> PushDetails {
        PushDetails(
            path: self.path, slot: self.slot, sequence: self.sequence, clientAddress: self.clientAddress, parameters: self.parameters,
            media: self.media, end: end)
    }
}
