package import Support

/// Writes the answers of the `/dollsCatcher/` API: `{code, msg?, data?}`. Pure.
package enum DollsCatcherAnswer {
    package static let success = 200

    /// A machine's room as these answers show it. A value.
    package struct Room: Sendable, Equatable {
        package let id: Int64
        package let name: String
        /// The host's account.
        package let creator: String
        /// `roomStatus`.
        package let isOpen: Bool

        package init(id: Int64, name: String, creator: String, isOpen: Bool) {
            self.id = id
            self.name = name
            self.creator = creator
            self.isOpen = isOpen
        }
    }

    /// The addresses of one camera's stream.
    package struct PullURLs: Sendable, Equatable {
        package let rtmp: String
        package let http: String
        package let hls: String

        package init(rtmp: String, http: String, hls: String) {
            self.rtmp = rtmp
            self.http = http
            self.hls = hls
        }
    }

    package static func success(_ data: JSONValue? = nil) -> JSONValue {
        var members: [JSONValue.Member] = []
        members.add("code", self.success)
        if let data { members.append(.init(name: "data", value: data)) }
        return .object(members)
    }

    package static func failure(_ error: DollsCatcherError) -> JSONValue {
        ["code": .integer(Int64(error.code)), "msg": .string(error.message)]
    }

    /// The answer to `tourist`. `imToken`: a token for the channel.
    package static func tourist(_ account: DollsCatcherAccount, imToken: String) -> JSONValue {
        self.success(["accid": .string(account.accid), "nickname": .string(account.nickname), "imToken": .string(imToken)])
    }

    /// The answer to `host/create`.
    package static func created(roomID: Int64) -> JSONValue { self.success(.integer(roomID)) }

    /// The answer to `room/list`. `total` counts all public rooms; `entries` holds those of this page, each made by
    /// ``entry(_:first:second:liveStatus:online:queued:)``.
    package static func list(total: Int, _ entries: [JSONValue]) -> JSONValue {
        self.success(["total": .integer(Int64(total)), "list": .array(entries)])
    }

    /// A room in a list. `first`, `second`: its cameras. `liveStatus`: 0 idle, 1 live, 2 disabled, 3 live and recording. `queued` includes the
    /// player.
    package static func entry(_ room: Room, first: PullURLs, second: PullURLs, liveStatus: Int, online: Int, queued: Int) -> JSONValue {
        [
            "roomId": .integer(room.id), "name": .string(room.name), "creator": .string(room.creator),
            "rtmpPullUrl1": .string(first.rtmp), "rtmpPullUrl2": .string(second.rtmp),
            "httpPullUrl1": .string(first.http), "httpPullUrl2": .string(second.http),
            "hlsPullUrl1": .string(first.hls), "hlsPullUrl2": .string(second.hls),
            "roomStatus": .bool(room.isOpen), "liveStatus": .integer(Int64(liveStatus)),
            "onlineUserCount": .integer(Int64(online)), "queueCount": .integer(Int64(queued)),
        ]
    }

    /// The answer to `host/query`. `token`: the device's token for the channel. The URLs include their credentials.
    package static func host(_ room: Room, token: String, pushURLs first: String, _ second: String) -> JSONValue {
        self.success([
            "roomId": .integer(room.id), "name": .string(room.name), "creator": .string(room.creator), "creatorToken": .string(token),
            "pushUrl1": .string(first), "pushUrl2": .string(second), "roomStatus": .bool(room.isOpen),
        ])
    }
}
