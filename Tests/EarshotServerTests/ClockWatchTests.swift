import Testing

@testable import EarshotServer

@Suite struct ClockWatchTests {
    /// Once when the clocks part, either way, and once when they are together: not each time around a limit.
    @Test func changesAreTold() {
        var watch = ClockWatch()
        let told = [0, 5_000, 5_001, 86_400_000, 2_501, 2_500, 5_000, -5_001, -2_501, 0].map { watch.check($0) }
        #expect(told == [nil, nil, true, nil, nil, false, nil, true, nil, false])
    }
}
