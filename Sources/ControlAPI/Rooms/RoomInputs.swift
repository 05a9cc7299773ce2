package import HTTPAPI
import HTTPServer
import Rooms
import ServerConfiguration
import Support

/// Inputs of the room calls.
enum RoomInputs {
    static let room = Input("roomId", .id, "The room's id.").required
    static let user = Input("userId", .id, "The user's id.").required

    // MARK: Creation and changes

    static let id = Input("roomId", .roomID, "The room's id; if omitted, that of the device's last room, or else a random one.")
    static let app = Input("app", .id, "The app of the room's streams.", fallback: "live")
    static let slots = Input("slots", .whole(1...8), "The number of streams: slot 1 is app/roomId, slot n is app/roomId-n.", fallback: 1)
    static let title = Input("title", .text(length: 0...RoomLimits.titleLength), "The title, for lists.")
    static let custom = Input(
        "custom", .jsonObject(bytes: 4_096),
        "The back end's own data: a JSON object of at most 4096 bytes as compact JSON. Numbers keep all their digits.")
    static let isPublic = Input("isPublic", .flag, "Whether public lists may show the room.")
    static let policy = Input(
        "policy", .policy,
        "The room's times, and whether it is recorded. Omitted members are as in the server's settings (new room) or unchanged (change).")
    static let owner = Input("owner", .id, "The owner's user id. The owner's presence counts for policy.ownerOffline.")
    static let device = Input(
        "deviceUid", .id, "The device that pushes slot 1, as app/deviceUid; players and calls know it by that name too.")
    static let newOwner = Input("owner", .nullable(.id), "The owner's user id; null removes the owner.")
    static let newDevice = Input("deviceUid", .nullable(.id), "The device that pushes slot 1; null removes the device.")

    // MARK: Lists

    static let states = Input("state", .choices() as InputType<Set<RoomState>>, "Only rooms in one of these states.")
    static let text = Input(
        "q", .sought(length: 1...RoomLimits.searchLength),
        "Words of the title, id, owner or deviceUid; the last one may be a prefix. Of more than 10000 matches the newest are found.")
    static let ownerFilter = Input("owner", .id, "Only this user's rooms.")
    static let deviceFilter = Input("deviceUid", .id, "Only this device's rooms.")
    static let listed = Input("isPublic", .flag, "true: only public rooms; false: only rooms that are not public.")
    static let sort = Input("sort", .choice() as InputType<RoomQuery.Order>, "The order; a minus sign reverses it.", fallback: .newest)
    static let page = Input(
        "page", .whole(1...Int64(RoomQuery.deepest)), "The page, from 1, within the first 10000 rooms; use `after` to go further.")
    static let pageSize = Input(
        "pageSize", .whole(Int64(RoomQuery.sizes.lowerBound)...Int64(RoomQuery.sizes.upperBound)), "Rooms per page.", fallback: 20)
    static let after = Input("after", .sought(length: 1...RoomQuery.longestCursor), "The `next` of the previous page.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of members.", fallback: 100)
    static let afterUser = Input("after", .id, "The `next` of the previous page.")

    // MARK: Calls

    static let seconds = Input(
        "seconds", .seconds(1...(30 * 86_400_000)), "Seconds to add to the room's countdown; if omitted, the countdown starts again.")
    static let sender = Input("userId", .id, "The user or device that sends the heartbeat.")
    static let slot = Input("slot", .whole(1...8), "The slot that pauses; all slots if omitted.")
    static let likes = Input("count", .whole(1...100), "The number of likes to add.", fallback: 1)
    static let kick = Input(
        "seconds", .seconds(0...Kick.longestMs), "Seconds for which the user may not come back: 10 if omitted, 0 for none.",
        fallback: Kick.defaultMs)
    static let nick = Input("nick", .text(length: 0...RoomLimits.nickLength), "The nick, for lists of members.", fallback: "")
}

extension InputType<RoomID> {
    static var roomID: InputType {
        InputType<String>.id.map { (text: String) throws(BrokenRule) in
            do throws(FieldError) { return try RoomID(checking: text) } catch { throw BrokenRule(error.rule) }
        }
    }
}

extension InputType<[String: Int64]> {
    /// Settings of a room's policy: durations in seconds, counts and choices unchanged.
    package static var policy: InputType {
        let fields = RoomPolicy.fields.map { field in
            let kind: InputType<Int64> =
                switch field.kind {
                case .duration: .seconds(field.range)
                case .count: .whole(field.range)
                case .words(let words): .index(in: words)
                }
            return (field, kind)
        }
        let schema = Schema.named(
            "PolicyChanges", .object(fields.map { .init(name: $0.name, schema: $1.schema, help: $0.help, isRequired: false) }))
        return InputType(schema) { (json: JSONValue) throws(BrokenRule) in
            guard case .object(let members) = json else { throw BrokenRule("expected an object with policy settings") }
            var values: [String: Int64] = [:]
            for member in members {
                guard let (field, kind) = fields.first(where: { $0.0.name == member.name }) else {
                    let nearest = Suggestion.nearest(member.name, fields.map(\.0.name)).map { "did you mean \($0)?" }
                    throw BrokenRule(
                        "there is no such policy setting; \(nearest ?? "expected one of \(fields.map(\.0.name).joined(separator: ", "))")",
                        inner: String(member.name.prefix(60)), value: member.value.shown)
                }
                do throws(BrokenRule) {
                    values[field.name] = try kind.read(member.value)
                } catch {
                    throw BrokenRule(error.rule, inner: field.name, value: member.value.shown)
                }
            }
            return values
        }
    }
}

extension RoomPolicy.Field {
    /// The description in the OpenAPI document.
    var help: String {
        guard let setting = ConfigSetting.byPath["rooms.policy.\(self.name)"] else { return "" }
        return self.isDuration ? "\(setting.help) Seconds." : setting.help
    }
}

/// Inputs of a ban: its end or its length, at most one of them, and its reason.
enum Ban {
    static let until = Input(
        "forbiddenUntil", .instant, "When the ban ends, at most 90 days from now; 7 days from now if seconds is omitted too.")
    static let seconds = Input("seconds", .seconds(1_000...StreamBan.longestMs), "The length of the ban, instead of forbiddenUntil.")
    static let reason = Input("reason", .text(length: 0...StreamBan.longestReason), "The reason, which refused clients get.", fallback: "")

    static let inputs: [any RequestInput] = [Self.until, Self.seconds, Self.reason]

    /// The ban's end in milliseconds since 1970. Throws for both inputs, a past time, or one over 90 days away.
    static func end(_ call: APICall) throws(APIError) -> Int64 {
        let (now, seconds) = (call.nowMs, call[Self.seconds])
        guard let until = call[Self.until] else { return now + (seconds ?? StreamBan.defaultMs) }
        let field = Self.until.name
        guard seconds == nil else { throw APIError(FieldError("seconds", "", "expected \(field) or seconds, not both")) }
        guard until > now else { throw APIError(FieldError(field, Instant.text(until), "expected a time in the future")) }
        guard until - now <= StreamBan.longestMs else {
            throw APIError(FieldError(field, Instant.text(until), "expected at most 90 days from now"))
        }
        return until
    }
}
