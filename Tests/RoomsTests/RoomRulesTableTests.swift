import Rooms
import Testing

/// Every state × every input, in tables. Each shows what a room does ten seconds after its creation.
///
/// A line holds inputs, an arrow and the result as ``RoomAtWork/description`` shows it. `same` is the state before without effects;
/// `refused` lists the allowed states.
@Suite struct RoomRulesTableTests {
    /// Names used in the tables. Push 5 belongs to the fixtures, 9 is another.
    static let inputs: [(name: String, input: RoomInput)] =
        [
            ("admit9", .pushAdmitted(slot: 1, sequence: 9)),
            ("media5", .mediaArrived(slot: 1, sequence: 5)), ("media9", .mediaArrived(slot: 1, sequence: 9)),
            ("idle5", .mediaIdle(slot: 1, sequence: 5)), ("idle9", .mediaIdle(slot: 1, sequence: 9)),
            ("pauseClient", .pauseAnnounced(slot: 1)), ("pauseAPI", .pauseAnnounced(slot: nil)),
            ("end9", .pushEnded(slot: 1, sequence: 9, .connectionLost)), ("finished", .finished(slot: 1)),
            ("beat", .heartbeat(sender: nil)), ("beatDevice", .heartbeat(sender: "cam")), ("beatOwner", .heartbeat(sender: "olga")),
            ("joinOwner", .memberJoined(user: "olga")), ("joinOther", .memberJoined(user: "ben")),
            ("leaveOwner", .memberLeft(user: "olga")), ("leaveOther", .memberLeft(user: "ben")),
            ("renew", .renew(byMs: nil)), ("renew50", .renew(byMs: 50_000)),
            ("close", .close), ("expire", .expire),
            ("forbid70", .forbid(untilMs: RoomAtWork.at(70), reason: "r")), ("resume", .resume),
            ("forbidSlot70", .forbidSlot(1, untilMs: RoomAtWork.at(70), reason: "r")), ("resumeSlot", .resumeSlot(1)),
            ("reopen", .reopen), ("serverStarted", .serverStarted), ("tick", .tick),
        ] + PushEnd.allCases.map { ("end5.\($0.rawValue)", .pushEnded(slot: 1, sequence: 5, $0)) }

    /// A fixture's history, and its table.
    struct Table: Sendable, CustomTestStringConvertible {
        let name: String
        let past: [(second: Int64, input: RoomInput)]
        let before: String
        let lines: String
        var testDescription: String { self.name }
    }

    private static let admitted: [(second: Int64, input: RoomInput)] = [(1, .pushAdmitted(slot: 1, sequence: 5))]
    private static let live = Self.admitted + [(2, .mediaArrived(slot: 1, sequence: 5))]

    static let tables: [Table] = [
        Table(
            name: "created", past: [], before: "created/created [-] 300",
            lines: """
                admit9 -> created/created [9] 300
                media5, media9, idle5, idle9, pauseClient, end9, finished, end5.* -> same
                pauseAPI -> refused: live interrupted
                beat, beatDevice, beatOwner -> created/created [-] 55
                joinOwner, joinOther, leaveOther -> same
                leaveOwner -> created/created [-] room.ownerOffline 210
                renew -> created/created [-] room.renewed 310
                renew50 -> created/created [-] room.renewed 350
                close -> closed/closed [-] room.closed cut:-:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:-:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:-:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted, tick -> same
                """),
        Table(
            name: "created, push let in", past: Self.admitted, before: "created/created [5] 300",
            lines: """
                admit9 -> created/created [5 9] 300
                media5 -> live/media [5*] room.live 3610
                media9, idle5, idle9, pauseClient, end9, finished -> same
                pauseAPI -> refused: live interrupted
                end5.* -> created/created [-] 300
                beat, beatDevice, beatOwner -> created/created [5] 55
                joinOwner, joinOther, leaveOther -> same
                leaveOwner -> created/created [5] room.ownerOffline 210
                renew -> created/created [5] room.renewed 310
                renew50 -> created/created [5] room.renewed 350
                close -> closed/closed [-] room.closed cut:5:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:5:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:5:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted -> created/created [-] 300
                tick -> same
                """),
        Table(
            name: "live", past: Self.live, before: "live/media [5*] 3602",
            lines: """
                admit9 -> live/media [5 9*] 3602
                media5, media9, idle9, end9, finished -> same
                idle5 -> interrupted/mediaIdle [5] room.interrupted 110
                pauseClient, pauseAPI -> interrupted/paused [5] room.interrupted 130
                end5.clientStopped -> interrupted/stopped [-] room.interrupted 13
                end5.connectionLost, end5.mediaIdle, end5.takenOver, end5.protocolError, end5.refused -> \
                interrupted/publisherLost [-] room.interrupted 40
                end5.dropped, end5.forbidden, end5.roomEnded -> interrupted/dropped [-] room.interrupted 40
                end5.serverShutdown, end5.serverRestart -> interrupted/serverRestart [-] room.interrupted 40
                end5.nodeLost -> interrupted/nodeLost [-] room.interrupted 40
                beat, beatDevice -> same
                beatOwner -> live/media [5*] 55
                joinOwner, joinOther, leaveOther -> same
                leaveOwner -> live/media [5*] room.ownerOffline 3602
                renew -> live/media [5*] room.renewed 3610
                renew50 -> live/media [5*] room.renewed 3652
                close -> closed/closed [-] room.closed cut:5:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:5:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:5:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted -> interrupted/serverRestart [-] room.interrupted 40
                tick -> same
                """),
        Table(
            name: "interrupted, publisher lost", past: Self.live + [(6, .pushEnded(slot: 1, sequence: 5, .connectionLost))],
            before: "interrupted/publisherLost [-] 36",
            lines: """
                admit9 -> interrupted/publisherLost [9] 36
                media5, media9, idle5, idle9, pauseClient, end9, end5.* -> same
                finished -> interrupted/stopped [-] 13
                pauseAPI -> interrupted/paused [-] 130
                beat, beatDevice, beatOwner, joinOwner, joinOther, leaveOther -> same
                leaveOwner -> interrupted/publisherLost [-] room.ownerOffline 36
                renew -> interrupted/publisherLost [-] room.renewed 40
                renew50 -> interrupted/publisherLost [-] room.renewed 86
                close -> closed/closed [-] room.closed cut:-:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:-:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:-:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted, tick -> same
                """),
        Table(
            name: "interrupted, silent", past: Self.live + [(6, .mediaIdle(slot: 1, sequence: 5))],
            before: "interrupted/mediaIdle [5] 106",
            lines: """
                admit9 -> interrupted/mediaIdle [5 9] 106
                media5 -> live/media [5*] room.resumed 3602
                media9, idle5, idle9, end9, finished -> same
                pauseClient, pauseAPI -> interrupted/paused [5] 130
                end5.clientStopped -> interrupted/stopped [-] 13
                end5.connectionLost, end5.mediaIdle, end5.takenOver, end5.protocolError, end5.refused -> \
                interrupted/publisherLost [-] 40
                end5.dropped, end5.forbidden, end5.roomEnded -> interrupted/dropped [-] 40
                end5.serverShutdown, end5.serverRestart -> interrupted/serverRestart [-] 40
                end5.nodeLost -> interrupted/nodeLost [-] 40
                beat, beatDevice, beatOwner -> interrupted/mediaIdle [5] 55
                joinOwner, joinOther, leaveOther -> same
                leaveOwner -> interrupted/mediaIdle [5] room.ownerOffline 106
                renew -> interrupted/mediaIdle [5] room.renewed 110
                renew50 -> interrupted/mediaIdle [5] room.renewed 156
                close -> closed/closed [-] room.closed cut:5:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:5:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:5:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted -> interrupted/mediaIdle [-] 106
                tick -> same
                """),
        Table(
            name: "interrupted, paused", past: Self.live + [(6, .pauseAnnounced(slot: 1))], before: "interrupted/paused [5] 126",
            lines: """
                admit9 -> interrupted/paused [5 9] 126
                media5 -> live/media [5*] room.resumed 3602
                media9, idle5, idle9, pauseClient, end9, finished -> same
                pauseAPI -> refused: live
                end5.clientStopped -> interrupted/stopped [-] 13
                end5.connectionLost, end5.mediaIdle, end5.takenOver, end5.protocolError, end5.refused -> interrupted/paused [-] 126
                end5.serverShutdown, end5.serverRestart, end5.nodeLost -> interrupted/paused [-] 126
                end5.dropped, end5.forbidden, end5.roomEnded -> interrupted/dropped [-] 40
                beat, beatDevice, beatOwner -> interrupted/paused [5] 55
                joinOwner, joinOther, leaveOther -> same
                leaveOwner -> interrupted/paused [5] room.ownerOffline 126
                renew -> interrupted/paused [5] room.renewed 130
                renew50 -> interrupted/paused [5] room.renewed 176
                close -> closed/closed [-] room.closed cut:5:roomEnded+viewers 1010
                expire -> expired/expired [-] room.expired cut:5:roomEnded+viewers 1010
                forbid70, forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:5:forbidden+viewers 70
                resume -> refused: forbidden
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted -> interrupted/paused [-] 126
                tick -> same
                """),
        Table(
            name: "forbidden", past: Self.live + [(6, .forbid(untilMs: RoomAtWork.at(500), reason: "r"))],
            before: "forbidden/forbidden [-] 500",
            lines: """
                admit9 -> refused: created live interrupted
                media5 -> forbidden/forbidden [-] cut:5:forbidden 500
                media9 -> forbidden/forbidden [-] cut:9:forbidden 500
                idle5, idle9, pauseClient, end9, finished, end5.* -> same
                pauseAPI -> refused: live interrupted
                beat, beatDevice, joinOwner, joinOther, leaveOther -> same
                beatOwner -> forbidden/forbidden [-] 55
                leaveOwner -> forbidden/forbidden [-] room.ownerOffline 500
                renew, renew50, expire -> refused: created live interrupted
                forbid70 -> forbidden/forbidden [-] stream.forbidden:1 70
                close -> closed/closed [-] room.closed cut:-:roomEnded+viewers 500
                resume, resumeSlot -> created/resumed [-] stream.resumed:1 room.unforbidden 310
                forbidSlot70 -> forbidden/forbidden [-] stream.forbidden:1 70
                reopen -> refused: expired
                serverStarted, tick -> same
                """),
        Table(
            name: "expired", past: Self.live + [(6, .expire)], before: "expired/expired [-] 1006",
            lines: """
                admit9, renew, renew50, expire -> refused: created live interrupted
                close -> closed/closed [-] room.closed cut:-:roomEnded+viewers 1010
                forbid70 -> forbidden/forbidden [-] stream.forbidden:1 room.forbidden cut:-:forbidden+viewers 70
                media5 -> expired/expired [-] cut:5:roomEnded 1006
                media9 -> expired/expired [-] cut:9:roomEnded 1006
                idle5, idle9, pauseClient, end9, finished, end5.*, leaveOwner, leaveOther -> same
                pauseAPI -> refused: live interrupted
                beat, beatDevice, beatOwner, joinOwner, joinOther -> refused: created live interrupted forbidden
                resume -> refused: forbidden
                forbidSlot70 -> expired/expired [-] stream.forbidden:1 70
                resumeSlot -> refused: not forbidden
                reopen -> created/reopened [-] room.created 310
                serverStarted, tick -> same
                """),
        Table(
            name: "closed", past: Self.live + [(6, .close)], before: "closed/closed [-] 1006",
            lines: """
                admit9, renew, renew50, expire -> refused: created live interrupted
                forbid70 -> refused: created live interrupted forbidden expired
                media5 -> closed/closed [-] cut:5:roomEnded 1006
                media9 -> closed/closed [-] cut:9:roomEnded 1006
                idle5, idle9, pauseClient, end9, finished, end5.*, leaveOwner, leaveOther -> same
                pauseAPI -> refused: live interrupted
                beat, beatDevice, beatOwner, joinOwner, joinOther -> refused: created live interrupted forbidden
                close -> same
                resume -> refused: forbidden
                forbidSlot70 -> closed/closed [-] stream.forbidden:1 70
                resumeSlot -> refused: not forbidden
                reopen -> refused: expired
                serverStarted, tick -> same
                """),
    ]

    @Test(arguments: Self.tables) func everyInput(_ table: Table) throws {
        var fixture = try RoomAtWork()
        for (second, input) in table.past { try fixture.at(second, input) }
        fixture.effects = []
        #expect(fixture.description == table.before)

        var missing = Set(Self.inputs.map(\.name))
        for line in table.lines.split(separator: "\n") {
            let sides = line.split(separator: " -> ")
            try #require(sides.count == 2, "\(line)")
            for name in sides[0].split(separator: ", ") {
                let matching = Self.inputs.filter { name.hasSuffix("*") ? $0.name.hasPrefix(name.dropLast()) : $0.name == name }
                #expect(!matching.isEmpty, "\(name)")
                for (name, input) in matching {
                    #expect(missing.remove(name) != nil, "\(name) stands there twice")
                    let expected = sides[1] == "same" ? table.before : String(sides[1])
                    #expect(Self.result(of: input, on: fixture) == expected, "\(table.name) × \(name)")
                }
            }
        }
        #expect(missing.isEmpty)
    }

    @Test func theTablesHaveAllStates() {
        #expect(Set(Self.tables.compactMap { RoomState(rawValue: String($0.before.prefix { $0 != "/" })) }) == Set(RoomState.allCases))
    }

    private static func result(of input: RoomInput, on fixture: RoomAtWork) -> String {
        var work = fixture
        do throws(RoomRefusal) {
            try work.at(10, input)
            return work.description
        } catch {
            switch error {
            case .wrongState(let state, let allowed):
                return
                    "refused: \(state == fixture.room.state ? "" : "not in \(state) but ")\(allowed.map(\.rawValue).joined(separator: " "))"
            case .slotNotForbidden(1): return "refused: not forbidden"
            case .noSlot, .slotForbidden, .slotNotForbidden: return "refused: \(error)"
            }
        }
    }
}
