# The constants of the communication model are a part of biga-replay.
$(BUILD)/obj/bench/replay/costs_text.o: bench/replay/costs.json
