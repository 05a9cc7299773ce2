@testable import Apps
@testable import Rooms
@testable import Support

/// A class in memory, and what inputs do to it in short: `SC:ATMsg a {…} >1,2` is sent by a to connections 1 and 2.
struct ClassroomLab {
    var room: Classroom
    private var lastConnection: UInt64 = 0

    init(limits: ClassroomLimits = ClassroomLimits()) { self.room = Classroom(limits: limits, createdAtMs: 0) }

    /// a the assistant, t the teacher, s a student, v audience, on connections 1 to 4.
    static func full() -> ClassroomLab {
        var lab = ClassroomLab()
        for id in ["a", "t", "s"] { lab.enter(id) }
        lab.enter("v", isAudience: true)
        return lab
    }

    /// Joins and connects.
    mutating func enter(_ id: String, isAudience: Bool = false) {
        _ = self.act(.join(id: id, name: id.uppercased(), isAudience: isAudience, disableCamera: false))
        self.lastConnection += 1
        _ = self.act(.connect(id: id, name: "", role: "", ConnectionID(self.lastConnection)))
    }

    /// The effects, or the refusal's code alone.
    mutating func act(_ input: Classroom.Input, at nowMs: Int64 = 1) -> [String] {
        do throws(GatheringRefusal) {
            return try self.room.apply(input, nowMs: nowMs).map(Self.short)
        } catch {
            return [error.code]
        }
    }

    mutating func act(_ input: Gathering.Input, at nowMs: Int64 = 1) -> [String] {
        do throws(GatheringRefusal) {
            return try self.room.apply(input, nowMs: nowMs).map(Self.short)
        } catch {
            return [error.code]
        }
    }

    static func short(_ effect: Gathering.Effect) -> String {
        switch effect {
        case .send(let signal, let to): "\(self.short(signal)) >\(to.map { "\($0.rawValue)" }.joined(separator: ","))"
        case .close(let connection, let why): "close \(connection.rawValue) \(why)"
        case .joined(let member): "joined \(member.id) \(member.role)"
        case .left(let member, let why): "left \(member.id) \(why)"
        case .queueChanged(let change, let entry): "queue \(change.rawValue) \(entry.key)"
        case .ticketChanged(let change, let ticket): "ticket \(change) \(ticket.id) \(ticket.kind) \(ticket.from) \(ticket.to)"
        case .event(let kind, let data): "event \(kind.rawValue) \(data.text)"
        case .mute(let id, let isMuted): "mute \(id) \(isMuted)"
        case .ended(let reason): "ended \(reason)"
        }
    }

    private static func short(_ signal: Gathering.Signal) -> String {
        switch signal {
        case .notified(let from, let object, let content, _): "\(object) \(from) \(content.text)"
        case .hello(let you, let others, _, let tickets): "hello \(you.id) \(others.map(\.id)) \(tickets.map(\.id))"
        case .said(let from, let object, let content, _): "said \(from.id) \(object) \(content.text)"
        case .directed(let from, let name, _): "\(name) \(from.id)"
        case .closed(let reason): "closed \(reason)"
        case .arrived, .away, .back, .departed, .commanded, .turn, .queue, .ticket: "unexpected \(signal)"
        }
    }

    // MARK: - Expected messages

    static func people(_ action: Int, _ id: String, _ role: Int, from: String? = nil, at: Int = 1, camera: Bool = true) -> String {
        #"SC:RMCMsg \#(from ?? id) {"action":\#(action),"userId":"\#(id)","userName":"\#(id.uppercased())","role":\#(role),"#
            + #""camera":\#(camera),"microphone":true,"timestamp":\#(at)}"#
    }

    static func roles(_ by: String, _ users: (String, Int)...) -> String {
        let users = users.map { #"{"userId":"\#($0.0)","userName":"\#($0.0.uppercased())","role":\#($0.1)}"# }
        return #"SC:RCMsg \#(by) {"opUserId":"\#(by)","users":[\#(users.joined(separator: ","))]}"#
    }

    static func display(_ from: String, _ text: String) -> String { #"SC:DisplayMsg \#(from) {"display":"\#(text)"}"# }

    static func displayed(_ text: String) -> String { #"event display.changed {"display":"\#(text)"}"# }

    static func role(_ id: String, _ role: String) -> String { #"event member.role {"userId":"\#(id)","role":"\#(role)"}"# }

    static func teacher(_ id: String) -> String { "display://type=1?userId=\(id)?uri=" }
}

/// A generator with a seed (SplitMix64).
struct SeededDice: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
