import Testing

@testable import ServerConfiguration

/// Division of a limit of address space.
@Suite struct AddressSpacePlanTests {
    private static let mebibyte = 1 << 20

    private static func plan(_ limit: Int, cores: Int = 2) throws -> AddressSpacePlan {
        try AddressSpacePlan(limit: limit * self.mebibyte, mapped: 300 * self.mebibyte, stack: 2 * self.mebibyte, heaps: 2, cores: cores)
    }

    /// Half of what is left after program, threads, heaps and the rest: 300 + 46 × 2 + 128 + 128.
    @Test(arguments: [(712, 32), (1_000, 176), (4_096, 1_724)]) func streamsGetHalfOfTheRest(_ limit: Int, _ memory: Int) throws {
        let plan = try Self.plan(limit)
        #expect(plan.base == 648 * Self.mebibyte && plan.memory == memory * Self.mebibyte)
    }

    @Test func tooLittleIsAnError() throws {
        let error = #expect(throws: AddressSpaceShortage.self) { try Self.plan(711) }
        #expect(error == AddressSpaceShortage(limit: 711 * Self.mebibyte, least: 712 * Self.mebibyte))
        let text = "\(try #require(error))"
        for words in ["is 711 MiB", "712 MiB", "ulimit -v", "LimitAS=", "limits.memory"] { #expect(text.contains(words), "\(text)") }
        // Each core has threads of its own.
        #expect(throws: AddressSpaceShortage.self) { try Self.plan(712, cores: 3) }
    }

    /// Commands need less than a server.
    @Test func commandsNeedLess() {
        let least = AddressSpacePlan.least(mapped: 300 << 20, stack: 2 << 20, heaps: 2, cores: 2)
        #expect(least == (300 + 10 * 2 + 128) << 20)
    }
}
