import HTTPServer
import Rooms
import ServerConfiguration
import Support

/// Inputs of the room calls.
enum RoomInputs {
    static let room = Input("roomId", .id, "The room's id.").required
    static let user = Input("userId", .id, "The user's id.").required

    // MARK: Creation and changes

    static let id = Input("roomId", .roomID, "Its id; a random one when none is given (a device's room keeps its own).")
    static let app = Input("app", .id, "The app of its streams.", fallback: "live")
    static let slots = Input("slots", .whole(1...8), "How many streams it has: slot 1 is app/roomId, slot n app/roomId-n.", fallback: 1)
    static let title = Input("title", .text(length: 0...RoomLimits.titleLength), "For lists.")
    static let custom = Input(
        "custom", .jsonObject(bytes: 4_096),
        "Whatever the app keeps there: a JSON object, at most 4096 bytes as compact JSON. Its numbers keep their digits, however many.")
    static let isPublic = Input("isPublic", .flag, "Whether lists for everybody may show it.")
    static let policy = Input("policy", .policy, "How its time runs out: what is not given is as the server's settings have it.")
    static let owner = Input("owner", .id, "The owner's user id; its presence counts for policy.ownerOffline.")
    static let device = Input("deviceUid", .id, "The device that pushes its slot 1, as app/deviceUid.")
    static let newOwner = Input("owner", .nullable(.id), "The owner's user id; null: none.")
    static let newDevice = Input("deviceUid", .nullable(.id), "The device that pushes its slot 1; null: none.")

    // MARK: Lists

    static let states = Input("state", .choices() as InputType<Set<RoomState>>, "Only rooms in one of these states.")
    static let text = Input(
        "q", .sought(length: 1...RoomLimits.searchLength), "Words of title, id or owner; the last may be the beginning of one.")
    static let ownerFilter = Input("owner", .id, "Only this user's rooms.")
    static let listed = Input("isPublic", .flag, "true: only public rooms; false: only the others.", formerly: "public")
    static let sort = Input("sort", .choice() as InputType<RoomQuery.Order>, "The order; a minus turns it round.", fallback: .newest)
    static let page = Input(
        "page", .whole(1...Int64(RoomQuery.deepest)), "From 1, among the first 10000 rooms; `after` goes on without end.")
    static let pageSize = Input(
        "pageSize", .whole(Int64(RoomQuery.sizes.lowerBound)...Int64(RoomQuery.sizes.upperBound)), "Rooms on a page.", fallback: 20)
    static let after = Input("after", .sought(length: 1...RoomQuery.longestCursor), "The `next` of the page before.")
    static let limit = Input("limit", .whole(1...1_000), "How many at most.", fallback: 100)
    static let afterUser = Input("after", .id, "The `next` of the page before.")

    // MARK: Calls

    static let seconds = Input(
        "seconds", .seconds(1...(30 * 86_400_000)), "How much longer it may live; without: its countdown begins anew.")
    static let sender = Input("userId", .id, "The user or device that it comes from.")
    static let slot = Input("slot", .whole(1...8), "One of its streams; without: all of them.")
    static let likes = Input("count", .whole(1...100), "How many.", fallback: 1)
    static let kick = Input(
        "seconds", .seconds(0...Kick.longestMs), "For how long the user may not come back; without: 10. 0: it may at once.",
        fallback: Kick.defaultMs)
    static let nick = Input("nick", .text(length: 0...RoomLimits.nickLength), "For lists of members.", fallback: "")
}

extension InputType<[String: Int64]> {
    /// Settings of a room's policy: durations in seconds, counts and words as they are.
    package static var policy: InputType {
        let fields = RoomPolicy.fields.map { field in
            let kind: InputType<Int64> =
                switch field.kind {
                case .duration: .seconds(field.range)
                case .count: .whole(field.range)
                case .words(let words): .place(in: words)
                }
            return (field, kind)
        }
        let schema = Schema.named(
            "PolicyChanges", .object(fields.map { .init(name: $0.name, schema: $1.schema, help: $0.help, isRequired: false) }))
        return InputType(schema) { (json: JSONValue) throws(BrokenRule) in
            guard case .object(let members) = json else { throw BrokenRule("expected an object with settings of the policy") }
            var values: [String: Int64] = [:]
            for member in members {
                guard let (field, kind) = fields.first(where: { $0.0.name == member.name }) else {
                    let nearest = Suggestion.nearest(member.name, fields.map(\.0.name)).map { "did you mean \($0)?" }
                    throw BrokenRule(
                        "is not a setting of the policy; \(nearest ?? "known are \(fields.map(\.0.name).joined(separator: ", "))")",
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
        "forbiddenUntil", .instant, "Until when; at most 90 days from now. Without it and seconds: for 7 days.",
        formerly: "until", "resumeTime")
    static let seconds = Input("seconds", .seconds(1_000...StreamBan.longestMs), "For how long, instead of forbiddenUntil.")
    static let reason = Input("reason", .text(length: 0...StreamBan.longestReason), "Why, for whoever is refused.", fallback: "")

    static let inputs = [Self.until.erased, Self.seconds.erased, Self.reason.erased]

    /// The ban's end in milliseconds since 1970. Throws for both inputs, a past time, or one over 90 days away.
    static func end(_ call: APICall) throws(APIError) -> Int64 {
        let (now, seconds) = (call.nowMs, call[Self.seconds])
        guard let until = call[Self.until] else { return now + (seconds ?? StreamBan.defaultMs) }
        let field = call.values.givenName(of: Self.until.name) ?? Self.until.name
        guard seconds == nil else { throw APIError(FieldError("seconds", "", "expected \(field) or seconds, not both")) }
        guard until > now else { throw APIError(FieldError(field, Instant.text(until), "expected a time to come")) }
        guard until - now <= StreamBan.longestMs else {
            throw APIError(FieldError(field, Instant.text(until), "expected at most 90 days from now"))
        }
        return until
    }
}
