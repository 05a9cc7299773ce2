/// A requested link to another server, kept up across restarts until it is deleted. A value.
package struct Link: Sendable, Equatable {
    package enum Direction: String, Sendable, CaseIterable, Codable {
        /// Sends the stream to the other server.
        case push
        /// Fetches the stream from the other server.
        case pull
    }

    package let id: Int64
    package let direction: Direction
    /// The local stream.
    package let path: StreamPath
    /// The stream's address on the other server, with its credential; never logged or listed. Sealed as stored, or plain.
    package let url: String
    /// Whether a pull runs only while somebody plays.
    package let onDemand: Bool
    /// Milliseconds since 1970.
    package let createdAt: Int64

    package init(id: Int64, direction: Direction, path: StreamPath, url: String, onDemand: Bool, createdAt: Int64) {
        self.id = id
        self.direction = direction
        self.path = path
        self.url = url
        self.onDemand = onDemand
        self.createdAt = createdAt
    }

    /// A copy with the sealed or the plain form of the address.
    package func with(url: String) -> Link {
        Link(
            id: self.id, direction: self.direction, path: self.path, url: url, onDemand: self.onDemand, createdAt: self.createdAt)
    }
}

extension RoomLimits {
    /// Maximum links to other servers; each has a thread.
    package static let links = 200
}
