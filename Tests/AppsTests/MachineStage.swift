@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// A machine in a test: what an input does, in short lines. Turns' ids are u1, u2, …; connections: the device's 1, a's 2, b's 3, w's 4.
struct MachineStage {
    var machine: Machine

    /// Messages sent when a is polled, when the machine is idle, and when a's command is not carried out.
    static let polled = ["queue POLL a", "POLL a>1,2,3,4"]
    static let idle = "turn idle - - ->1,2,3,4"
    static func denied(_ text: String) -> String { #"host {"command":5,"data":\#(text),"code":0}>2"# }

    static let names = ["host", "a", "b", "w"]

    /// The device, players a and b, and w, who only watches.
    init(_ mode: Machine.Mode = .server, limits: MachineLimits = MachineLimits()) {
        self.machine = Machine(.init(name: "Bears", accid: "m@x.y", mode: mode), limits: limits, salt: "5a17")
        for (index, id) in Self.names.enumerated() {
            _ = self.act(.connect(id: id, name: id, role: Self.role(id), .init(UInt64(index + 1))))
        }
    }

    static func role(_ id: String) -> String { id == "host" ? Gathering.host : id == "w" ? "viewer" : Machine.player }

    /// Applies an input; the effects in short, or the refusal's code.
    mutating func act(_ input: Gathering.Input, at nowMs: Int64 = 0) -> [String] {
        let before = self.machine
        do throws(GatheringRefusal) {
            return self.short(try self.machine.apply(input, nowMs: nowMs))
        } catch {
            #expect(self.machine == before, "a refusal changes nothing")
            return [error.code]
        }
    }

    mutating func command(_ id: String, _ text: String, to: String? = nil, at nowMs: Int64 = 0) -> [String] {
        var text = text
        for turn in 1...9 as ClosedRange<Int64> { text = text.replacing("\"u\(turn)\"", with: "\"\(self.machine.uuid(of: turn))\"") }
        guard let content = try? JSONParser.parse(text.utf8) else { return ["no JSON"] }
        return self.act(.command(from: id, to: to, content: content), at: nowMs)
    }

    /// a in the queue, and b behind.
    mutating func queue() {
        _ = self.act(.offer(from: "a", value: "1"))
        _ = self.act(.offer(from: "b", value: "2"))
    }

    /// a is invited at 1,500; a's time is over at 13,500.
    mutating func offered() {
        self.queue()
        _ = self.act(.tick, at: 1_500)
    }

    /// a plays from 2,000; the claw drops at 34,000.
    mutating func playing() {
        self.offered()
        _ = self.command("a", #"{"command":12,"data":"u1"}"#, at: 2_000)
    }

    /// The claw drops at 3,000; the game is over at 23,000.
    mutating func settling() {
        self.playing()
        _ = self.command("a", #"{"command":2}"#, at: 3_000)
    }

    var phase: String { self.machine.turn?.phase.rawValue ?? "idle" }
    var queued: [String] { self.machine.gathering.queue.map(\.key) }

    // MARK: - In short

    func short(_ effects: [Gathering.Effect]) -> [String] { effects.map { self.named(self.short($0)) } }

    private func named(_ text: String) -> String {
        var text = text
        for turn in 1...9 as ClosedRange<Int64> { text = text.replacing(self.machine.uuid(of: turn), with: "u\(turn)") }
        return text
    }

    private func short(_ effect: Gathering.Effect) -> String {
        switch effect {
        case .send(let signal, let to): "\(self.short(signal))>\(to.map { "\($0.rawValue)" }.joined(separator: ","))"
        case .close(let connection, let why): "close \(connection.rawValue) \(why)"
        case .joined(let member): "joined \(member.id)"
        case .left(let member, let why): "left \(member.id) \(why)"
        case .queueChanged(let change, let entry): "queue \(change.rawValue) \(entry.key)"
        case .ticketChanged(let change, let ticket): "ticket \(change) \(ticket.id)"
        case .event(let kind, let data): ([kind.rawValue] + data.map(\.value.shown)).joined(separator: " ")
        case .mute(let id, let isMuted): "mute \(id) \(isMuted)"
        case .ended(let reason): "over \(reason)"
        }
    }

    private func short(_ signal: Gathering.Signal) -> String {
        switch signal {
        case .hello(let you, let others, let queue, _): "hello \(you.id) \(others.map(\.id)) \(queue.map(\.key))"
        case .arrived(let member): "arrived \(member.id)"
        case .away(let member): "away \(member.id)"
        case .back(let member): "back \(member.id)"
        case .departed(let member, let why): "departed \(member.id) \(why)"
        case .said(let from, let object, let content, _): "said \(from.id) \(object) \(content.text)"
        case .notified(let from, let object, let content, _): "notified \(from) \(object) \(content.text)"
        case .commanded(let from, let content): "\(from) \(content.text)"
        case .turn(let phase, let player, let uuid, let deadlineMs):
            "turn \(phase) \(player ?? "-") \(uuid ?? "-") \(deadlineMs.map { "\($0)" } ?? "-")"
        case .directed(let from, let name, _): "\(name) \(from.id)"
        case .queue(let change, let entry): "\(change.rawValue) \(entry.key)"
        case .ticket(let change, let ticket): "\(change) \(ticket.id)"
        case .closed(let reason): "closed \(reason)"
        }
    }
}
