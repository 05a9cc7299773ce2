import Crypto
package import Support

/// A call of RongCloud's server API, for native apps whose messages go through its cloud: a form that is signed by its headers. A value.
package struct RongCloudCall: Sendable, Equatable {
    /// Below the API's host: `/group/join.json`.
    package let path: String
    /// `application/x-www-form-urlencoded`.
    package let body: String
    /// The class's code when the call fails.
    package let failure: ClassroomCode

    package static let contentType = "application/x-www-form-urlencoded"

    /// Whether it sends a message; otherwise it changes a group or asks for a token.
    package var isMessage: Bool { self.failure == .message }

    private init(_ path: String, _ failure: ClassroomCode, _ fields: [(name: String, value: String)]) {
        self.path = path
        self.failure = failure
        self.body = fields.map { "\($0.name)=\(PercentCoding.encode($0.value))" }.joined(separator: "&")
    }

    // MARK: - Calls

    package static func token(userID: String, name: String, portraitURI: String = "") -> RongCloudCall {
        RongCloudCall("/user/getToken.json", .imToken, [("userId", userID), ("name", name), ("portraitUri", portraitURI)])
    }

    package static func createGroup(userIDs: [String], groupID: String, name: String) -> RongCloudCall {
        RongCloudCall("/group/create.json", .createRoom, userIDs.map { ("userId", $0) } + [("groupId", groupID), ("groupName", name)])
    }

    package static func joinGroup(userIDs: [String], groupID: String, name: String) -> RongCloudCall {
        RongCloudCall("/group/join.json", .createRoom, userIDs.map { ("userId", $0) } + [("groupId", groupID), ("groupName", name)])
    }

    package static func quitGroup(userIDs: [String], groupID: String) -> RongCloudCall {
        RongCloudCall("/group/quit.json", .leaveRoom, userIDs.map { ("userId", $0) } + [("groupId", groupID)])
    }

    package static func dismissGroup(userID: String, groupID: String) -> RongCloudCall {
        RongCloudCall("/group/dismiss.json", .leaveRoom, [("userId", userID), ("groupId", groupID)])
    }

    /// A message to a group, or to one of its members. `includesSender`: whether the sender's own client gets it too.
    package static func publish(
        from: String, to userID: String? = nil, groupID: String, object: String, content: JSONValue, includesSender: Bool
    ) -> RongCloudCall {
        RongCloudCall(
            "/message/group/publish.json", .message,
            [("fromUserId", from)] + (userID.map { [("toUserId", $0)] } ?? [])
                + [
                    ("toGroupId", groupID), ("objectName", object), ("content", content.text), ("pushContent", ""), ("pushData", ""),
                    ("isPersisted", "0"), ("isCounted", "0"), ("isIncludeSender", includesSender ? "1" : "0"), ("isMentioned", "0"),
                ])
    }

    // MARK: - Signature

    /// The headers that sign a call. `nonce`: random; `atSeconds`: since 1970.
    package static func headers(appKey: String, secret: String, nonce: String, atSeconds: Int64) -> [(name: String, value: String)] {
        [
            ("RC-App-Key", appKey), ("RC-Nonce", nonce), ("RC-Timestamp", "\(atSeconds)"),
            ("RC-Signature", self.signature(secret: secret, nonce: nonce, timestamp: "\(atSeconds)")),
        ]
    }

    /// SHA-1 of secret, nonce and timestamp, joined, in hex.
    static func signature(secret: String, nonce: String, timestamp: String) -> String {
        SecretText.hex(Insecure.SHA1.hash(data: Array("\(secret)\(nonce)\(timestamp)".utf8)))
    }

    // MARK: - Answers

    /// The token in an answer to ``token(userID:name:portraitURI:)``; nil for other calls. Throws the call's code for any answer other than
    /// `{"code":200,…}`.
    package func read(_ answer: String) throws(GatheringRefusal) -> String? {
        guard let value = try? JSONParser.parse(answer.utf8), case .integer(let code)? = value["code"] else {
            throw self.failure.refusal("RongCloud's answer is not JSON with a code.")
        }
        guard code == 200 else { throw self.failure.refusal("RongCloud answers with code \(code).") }
        guard case .string(let token)? = value["token"] else { return nil }
        return token
    }
}

/// RongCloud's callback about users who go online or offline: a JSON body, signed by its query. A value.
package struct RongCloudCallback: Sendable, Equatable {
    package struct Change: Sendable, Equatable {
        package let userID: String
        /// False after going offline and after logging out.
        package let isOnline: Bool
    }

    /// In the order in which they happened.
    package let changes: [Change]
    private let signature: Signature

    /// Changes in one call, at most.
    static let most = 1_000

    /// Reads `[{"userId":"u1","status":"1"}]`, where status is 0 online, 1 offline, 2 logged out, as text or number. Throws code 4 for a body that is
    /// not JSON, and 1 for other JSON.
    package init(query: [(name: String, value: String)], body: String) throws(GatheringRefusal) {
        self.signature = Signature(query)
        guard case .array(let entries) = try ClassroomFields.json(body), entries.count <= Self.most else {
            throw ClassroomCode.parameter.refusal("Expected an array of at most \(Self.most).")
        }
        var changes: [Change] = []
        for entry in entries {
            guard case .string(let id)? = entry["userId"], (1...ClassroomLimits.boardIDBytes).contains(id.utf8.count),
                let status = entry["status"]?.shown, ["0", "1", "2"].contains(status)
            else { throw ClassroomCode.parameter.refusal("Expected userId, and status 0, 1 or 2.") }
            changes.append(Change(userID: id, isOnline: status == "0"))
        }
        self.changes = changes
    }

    /// Whether the secret signed it, with a timestamp at most `skewSeconds` away from `nowMs`, the wall clock in milliseconds since 1970.
    package func isSigned(secret: String, nowMs: Int64, skewSeconds: Int64 = 300) -> Bool {
        self.signature.isGood(secret: secret, nowMs: nowMs, skewSeconds: skewSeconds)
    }

    /// The signature in a callback's query, which can be checked before the body is read. A value.
    package struct Signature: Sendable, Equatable {
        private let nonce: String
        private let timestamp: String
        private let signature: String

        /// `query`: decoded.
        package init(_ query: [(name: String, value: String)]) {
            func parameter(_ name: String) -> String { query.first { $0.name == name }?.value ?? "" }
            (self.nonce, self.timestamp, self.signature) = (parameter("nonce"), parameter("timestamp"), parameter("signature"))
        }

        /// As ``RongCloudCallback/isSigned(secret:nowMs:skewSeconds:)``.
        package func isGood(secret: String, nowMs: Int64, skewSeconds: Int64 = 300) -> Bool {
            let expected = RongCloudCall.signature(secret: secret, nonce: self.nonce, timestamp: self.timestamp)
            guard SecretText.isEqual(Array(expected.utf8), Array(self.signature.lowercased().utf8)) else { return false }
            // RongCloud writes seconds in some places and milliseconds in others.
            guard self.timestamp.utf8.count <= 14, let time = Int64(self.timestamp) else { return false }
            let ms = self.timestamp.utf8.count > 11 ? time : time * 1_000
            return abs(nowMs - ms) <= skewSeconds * 1_000
        }
    }
}
