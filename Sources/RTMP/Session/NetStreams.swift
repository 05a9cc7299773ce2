/// One message stream of a connection and its role.
struct NetStream {
    enum Role { case idle, decidingPublish, publishing, decidingPlay, playing, ended }
    let id: UInt32
    var role = Role.idle
    /// The name as the client wrote it, which FCUnpublish repeats. Holds credentials.
    var rawName = ""
    /// Whether the player wants a notice that its previous play is over (RTMP 1.0 §7.2.2.1, reset).
    var resets = true
}

/// The message streams of one connection, at most `limit`.
struct NetStreams {
    private let limit: Int
    private var list: [NetStream] = []
    /// The last id that this side chose.
    private var lastID: UInt32 = 0

    init(limit: Int) { self.limit = limit }

    var ids: [UInt32] { self.list.map(\.id) }

    subscript(position: Int) -> NetStream {
        get { self.list[position] }
        set { self.list[position] = newValue }
    }

    func role(_ id: UInt32) -> NetStream.Role? { self.list.first { $0.id == id }?.role }

    func resets(_ id: UInt32) -> Bool { self.list.contains { $0.id == id && $0.resets } }

    /// Ids of the streams published under this name, or under any name if `nil`.
    func published(as name: String?) -> [UInt32] {
        self.list.filter { $0.role == .publishing && (name == nil || $0.rawName == name) }.map(\.id)
    }

    /// Whether media without an accepted publish is legitimate. After an unpublish or a rejection, some media is still in flight; before any publish
    /// it is an error.
    func mayTrail(_ id: UInt32) -> Bool {
        guard let role = self.role(id) else { return id > 0 && id <= self.lastID }  // deleted
        return role != .idle && role != .playing
    }

    /// Opens a stream under the next free id. Clients that skip createStream choose their own ids, so any may be in use.
    mutating func open() throws(RTMPError) -> UInt32 {
        try self.checkLimit()
        repeat {
            self.lastID = self.lastID == .max ? 1 : self.lastID + 1
        } while self.list.contains { $0.id == self.lastID }
        self.list.append(NetStream(id: self.lastID))
        return self.lastID
    }

    /// The stream's position. Opens the stream if the client skipped createStream, as small encoders do.
    mutating func position(_ id: UInt32) throws(RTMPError) -> Int {
        if let found = self.list.firstIndex(where: { $0.id == id }) { return found }
        try self.checkLimit()
        self.list.append(NetStream(id: id))
        return self.list.count - 1
    }

    private func checkLimit() throws(RTMPError) {
        guard self.list.count < self.limit else { throw .tooManyMessageStreams(limit: self.limit) }
    }

    /// Changes the stream's role if it is `from`; returns whether it was.
    mutating func change(_ id: UInt32, from: NetStream.Role, to role: NetStream.Role) -> Bool {
        guard let position = self.list.firstIndex(where: { $0.id == id && $0.role == from }) else { return false }
        self.list[position].role = role
        return true
    }

    /// Ends the stream's activity and returns its last role; `nil` if there is no such stream.
    mutating func end(_ id: UInt32, delete: Bool) -> NetStream.Role? {
        guard let position = self.list.firstIndex(where: { $0.id == id }) else { return nil }
        let role = self.list[position].role
        if delete { self.list.remove(at: position) } else { self.list[position].role = .ended }
        return role
    }
}
