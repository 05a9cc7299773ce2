import CommandSupport
import Support

/// The room that the doctor creates for its stream; it removes the room and its recordings at the end.
struct DoctorRoom: Sendable {
    let api: APIClient
    let rights: TokenRights
    let id: String
    let pushURL: String
    /// rtmp, rtmps, flv, hls, mp4.
    let play: JSONValue

    static func newID() -> String { "doctor-\(String(UInt32.random(in: 0x1000_0000 ... .max), radix: 16))" }

    /// Creates the room and its URLs. If the doctor is killed, the room ends by itself after two minutes.
    ///
    /// - Throws: ``CommandFailure``.
    static func make(_ id: String, _ api: APIClient, _ rights: TokenRights) async throws -> DoctorRoom {
        _ = try await api.post(
            ["rooms"],
            [
                "roomId": .string(id), "title": "earshot doctor", "isPublic": false,
                "policy": [
                    "neverStarted": 60, "grace": 2, "cleanStop": 1, "mediaIdle": 10, "idleGrace": 2, "maxDuration": 120, "retention": 0,
                    "urlLifetime": 300, "record": "never",
                ],
            ])
        do {
            let push = try await api.post(["rooms", id, "push-url"])
            let play = try await api.get(["rooms", id, "play-urls"])
            return DoctorRoom(
                api: api, rights: rights, id: id, pushURL: push["rtmp"].string ?? "", play: play["streams"].list.first ?? .null)
        } catch {
            await self.remove(id, api, rights)
            throw error
        }
    }

    func remove() async { await Self.remove(self.id, self.api, self.rights) }

    /// Closes the room, which keeps no record of itself (retention 0), and deletes its recordings. A token of role admin also deletes the room if it
    /// still exists.
    private static func remove(_ id: String, _ api: APIClient, _ rights: TokenRights) async {
        // Runs after an interruption too: an unstructured task is not cancelled.
        await Task {
            _ = try? await api.post(["rooms", id, "close"])
            if rights.mayOperate { await self.deleteRecordings(of: id, api) }
            if rights == .admin { _ = try? await api.delete(["rooms", id]) }
        }.value
    }

    /// A recording that an interruption left running ends with its room, a moment later.
    private static func deleteRecordings(of id: String, _ api: APIClient) async {
        for _ in 0..<20 {
            guard let list = try? await api.get(["recordings"], [("roomId", id)])["list"].list, !list.isEmpty else { return }
            for case let recording? in list.map({ $0["recordingId"].string }) { _ = try? await api.delete(["recordings", recording]) }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }
}
