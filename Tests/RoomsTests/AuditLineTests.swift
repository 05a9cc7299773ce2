import Support
import Testing

@testable import Rooms

/// Lines of the audit trail, and the changes that they show.
@Suite struct AuditLineTests {
    @Test func aLineWithoutARequestHasNoStatus() {
        let line = AuditLine("closeRoom")
        #expect(line.status == 0 && line.result == "ok" && !line.isRefused)
    }

    /// A room's `custom` is shown when it is not the empty object.
    @Test func customIsShownWhenItSaysSomething() {
        let plain = Room(id: RoomID(stored: "cam1"), slots: [], at: 0)
        var custom = plain
        custom.custom = #"{"a":1}"#
        func change(from old: Room?, to new: Room?) -> AuditChange {
            var change = AuditChange()
            change.room(from: old, to: new, standard: RoomPolicy())
            return change
        }
        #expect(!change(from: nil, to: plain).after.contains { $0.name == "custom" })
        let (set, cleared) = (change(from: plain, to: custom), change(from: custom, to: plain))
        #expect(set.before.isEmpty && set.after.text == #"{"custom":"{\"a\":1}"}"#)
        #expect(cleared.after.isEmpty && cleared.before.text == #"{"custom":"{\"a\":1}"}"#)
    }
}
