import CommandSupport

/// The rights of the doctor's token, found by calls that change nothing.
enum TokenRights: Equatable, Sendable {
    case admin, ops, backend
    /// No token, or a refused one.
    case none(why: String)
    /// The API does not answer.
    case noAnswer(why: String)

    static func find(_ api: APIClient) async -> TokenRights {
        do {
            _ = try await api.get(["rooms"], [("pageSize", "1")])
        } catch let failure as CommandFailure {
            let why = failure.message.split(separator: "\n").first.map(String.init) ?? failure.message
            return failure.status == .unauthorised ? .none(why: why) : .noAnswer(why: why)
        } catch {
            return .noAnswer(why: "\(error)")
        }
        if await self.may(api, ["audit"]) { return .admin }
        return await self.may(api, ["counters"]) ? .ops : .backend
    }

    private static func may(_ api: APIClient, _ path: [String]) async -> Bool {
        do {
            _ = try await api.get(path, path == ["audit"] ? [("limit", "1")] : [])
            return true
        } catch {
            return false
        }
    }

    var mayOperate: Bool { self == .admin || self == .ops }
    var mayMakeRooms: Bool { self.mayOperate || self == .backend }

    var result: DoctorResult {
        let name = "token"
        switch self {
        case .admin: return .pass(name, "role admin")
        case .ops: return .pass(name, "role ops; left out, as they need admin: a webhook of the doctor's own")
        case .backend:
            return .warn(
                name, "role backend; left out, as they need ops or admin: recording, counters, webhooks",
                "earshot token create doctor --role admin")
        case .none(let why):
            return .warn(name, "\(why); left out: pushing, playing, recording, pictures, talk, webhooks", AccessToken.advice)
        case .noAnswer(let why): return .fail("API", why, "see the server's log; may this address call the API (access.apiFrom)?")
        }
    }
}
