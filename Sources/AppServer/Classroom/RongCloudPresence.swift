import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import Support

/// Members whom RongCloud connects: here from their join on, until its webhook says that they are offline.
extension GatheringRunner.Command {
    /// Nothing for a member that is here already, perhaps by a socket of this server.
    static func connecting(_ user: String, _ connection: ConnectionID) -> Self {
        var command = Self({ (gathering, nowMs) throws(GatheringRefusal) in
            try Self.connect(user, connection, &gathering, nowMs)
        })
        // So that a restart knows who was here.
        command.isKept = true
        return command
    }

    /// Nothing for a member that is here by a socket of this server.
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

/// `POST /classroom/api/v1/room/members/online-status`: RongCloud's webhook (``RongCloudWebhook``). Its signature stands for all other
/// rules about who may call; without a good one the status is 403. Any thread.
struct RongCloudWebhookRoute: Sendable {
    let services: AppServices
    let call: DialectCall

    static let path = "/room/members/online-status"

    func respond(to request: Request, _ query: [(name: String, value: String)], _ context: APIContext) async -> Response {
        guard let bridge = self.services.rongCloud,
            RongCloudWebhook.Signature(query).isGood(secret: bridge.secret, nowMs: WallClock.ms)
        else {
            // Anybody can send these: one line in ten seconds, and none where no webhook is expected.
            if let bridge = self.services.rongCloud { bridge.noteWebhook(from: self.call.client(request, context)?.ipAddress) }
            return DialectCall.answer(
                ClassroomAnswer.refusal(ClassroomCode.authorization.refusal("The signature is wrong or old.")), [:], to: request,
                status: .forbidden)
        }
        let value: JSONValue
        do {
            let webhook = try RongCloudWebhook(query: query, body: try await self.call.body(request, context))
            for change in webhook.changes { self.apply(change, bridge) }
            value = ClassroomAnswer.result()
        } catch {
            value = ClassroomAnswer.refusal(ClassroomAPI.refusal(error))
        }
        return DialectCall.answer(value, [:], to: request)
    }

    /// Users of other apps of the same account are none of ours.
    private func apply(_ change: RongCloudWebhook.Change, _ bridge: RongCloudBridge) {
        guard let id = bridge.classID(of: change.userID), let runner = self.services.gatherings.find(id) else { return }
        runner.submit(change.isOnline ? .connecting(change.userID, bridge.connection()) : .disconnecting(change.userID))
    }
}
