import Foundation
import Mutation

/// Runs the tests once for each mutant, two at a time.
struct MutantRun {
    let binary: TestBinary
    let work: WorkFolder

    private static let atATime = 2
    /// The limit of a run without a mutant, however slow the machine is.
    private static let plainLimit = Duration.seconds(900)

    /// The time after which a mutant counts as noticed: a multiple of its floor's time without one, plus a constant.
    private static func limit(_ plain: Duration) -> Duration { plain * 4 + .seconds(30) }

    /// Runs the mutants in the order of the draw. Returns their results after the `earlier` ones, and saves each at once.
    func results(of mutants: [Mutant], earlier: [MutantResult]) async throws -> [MutantResult] {
        let limits = try await self.limits(for: mutants)
        var results = earlier
        var waiting = mutants[...]
        try await withThrowingTaskGroup(of: MutantResult.self) { group in
            func start() {
                guard let mutant = waiting.popFirst(), let floor = Floor.of(mutant) else { return }
                let limit = limits[floor.name] ?? Self.plainLimit
                group.addTask { try await self.result(of: mutant, floor, within: limit) }
            }
            for _ in 0..<Self.atATime { start() }
            while let result = try await group.next() {
                results.append(result)
                try self.work.write(results)
                let seconds = String(format: "%.1f", result.seconds)
                let mutant = result.mutant
                let by = result.by.isEmpty ? "" : " by \(result.by)"
                say(
                    "\(results.count - earlier.count)/\(mutants.count) \(result.verdict.rawValue)\(by), \(seconds) s: \(mutant.file):\(mutant.line) \(mutant.after)"
                )
                start()
            }
        }
        return results
    }

    /// Returns the time limit of each floor's tests. Throws unless they all pass without a mutant.
    private func limits(for mutants: [Mutant]) async throws -> [String: Duration] {
        var limits: [String: Duration] = [:]
        for floor in Floor.all where mutants.contains(where: { Floor.of($0)?.name == floor.name }) {
            let (outcome, took) = try await self.binary.run(floor, mutant: 0, within: Self.plainLimit)
            switch outcome {
            case .passed(let tests) where tests > 0: say("\(floor.name): \(tests) tests pass without a mutant in \(took)")
            case .passed: throw Failure("no tests of \(floor.name) were found by \(floor.tests)")
            case .failed(let by): throw Failure("the tests of \(floor.name) must pass without a mutant, and do not: \(by)")
            case .timedOut: throw Failure("the tests of \(floor.name) did not end within \(Self.plainLimit)")
            }
            limits[floor.name] = Self.limit(took)
        }
        return limits
    }

    private func result(of mutant: Mutant, _ floor: Floor, within limit: Duration) async throws -> MutantResult {
        let (outcome, took) = try await self.binary.run(floor, mutant: mutant.id, within: limit)
        let seconds = took / .seconds(1)
        return switch outcome {
        case .passed: MutantResult(mutant: mutant, verdict: .survived, by: "", seconds: seconds)
        case .failed(let by): MutantResult(mutant: mutant, verdict: .killed, by: by, seconds: seconds)
        case .timedOut: MutantResult(mutant: mutant, verdict: .timedOut, by: "", seconds: seconds)
        }
    }
}
