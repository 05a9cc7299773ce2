import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import Support

/// Members connected by RongCloud: present from their join until its callback reports them offline.
extension GatheringRunner.Command {
    /// Has no effect if the member is already connected, perhaps by a socket of this server.
    static func connecting(_ user: String, _ connection: ConnectionID) -> Self {
        var command = Self({ (gathering, nowMs) throws(GatheringRefusal) in
            try Self.connect(user, connection, &gathering, nowMs)
        })
        // Stored, so that a restart knows who was connected.
        command.isKept = true
        return command
    }

    /// Has no effect if the member is connected by a socket of this server.
    static func disconnecting(_ user: String) -> Self {
        var command = Self({ (gathering, nowMs) throws(GatheringRefusal) in
            guard let connection = gathering.gathering.member(user)?.connection, connection.isRemote else { return [] }
            return try gathering.apply(.disconnect(connection), nowMs: nowMs)
        })
        command.isKept = true
        return command
    }

    static func connect(
        _ user: String, _ connection: ConnectionID, _ gathering: inout any GatheringDialect, _ nowMs: Int64
    ) throws(GatheringRefusal) -> [Gathering.Effect] {
        guard let member = gathering.gathering.member(user), member.connection == nil else { return [] }
        return try gathering.apply(.connect(id: user, name: member.name, role: member.role, connection), nowMs: nowMs)
    }
}

/// `POST /classroom/api/v1/room/members/online-status`: RongCloud's callback (``RongCloudCallback``). Its signature replaces all other access rules;
/// without a valid one the status is 403. Any thread.
struct RongCloudCallbackRoute: Sendable {
    let services: AppServices
    let call: DialectCall

    static let path = "/room/members/online-status"

    func respond(to request: Request, _ query: [(name: String, value: String)], _ context: APIContext) async -> Response {
        guard let bridge = self.services.rongCloud,
            RongCloudCallback.Signature(query).isGood(secret: bridge.secret, nowMs: WallClock.ms)
        else {
            // Anybody can send these: one line in ten seconds, and none if RongCloud is not configured.
            if let bridge = self.services.rongCloud { bridge.noteCallback(from: self.call.client(request, context)?.ipAddress) }
            return DialectCall.answer(
                ClassroomAnswer.refusal(ClassroomCode.authorization.refusal("The signature is wrong or old.")), [:], to: request,
                status: .forbidden)
        }
        let value: JSONValue
        do {
            let callback = try RongCloudCallback(query: query, body: try await self.call.body(request, context))
            for change in callback.changes { self.apply(change, bridge) }
            value = ClassroomAnswer.result()
        } catch {
            value = ClassroomAnswer.refusal(ClassroomAPI.refusal(error))
        }
        return DialectCall.answer(value, [:], to: request)
    }

    /// Ignores users of other apps of the same account.
    private func apply(_ change: RongCloudCallback.Change, _ bridge: RongCloudBridge) {
        guard let id = bridge.classID(of: change.userID), let runner = self.services.gatherings.find(id) else { return }
        runner.submit(change.isOnline ? .connecting(change.userID, bridge.connection()) : .disconnecting(change.userID))
    }
}
