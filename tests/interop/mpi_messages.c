/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program: each process sends messages of 4 bytes to 1 MiB to the next process, which
 * returns them, and compares them. */
#include <mpi.h>
#include <stdio.h>

#define INTS_MAX (1 << 18)

static int numbers[INTS_MAX];

/* Returns the number of wrong values. */
static int wrong(int n, int add)
{
	int bad = 0;

	for (int i = 0; i < n; i++)
		bad += numbers[i] != 3 * i + n + add;
	return bad;
}

static int ask(int n)
{
	for (int i = 0; i < n; i++)
		numbers[i] = 3 * i + n;
	MPI_Send(numbers, n, MPI_INT, 1, 1, MPI_COMM_WORLD);
	MPI_Recv(numbers, n, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return wrong(n, 1);
}

static int answer(int n)
{
	int bad;

	MPI_Recv(numbers, n, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	bad = wrong(n, 0);
	for (int i = 0; i < n; i++)
		numbers[i]++;
	MPI_Send(numbers, n, MPI_INT, 0, 2, MPI_COMM_WORLD);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, bad = 0, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int n = 1; n <= INTS_MAX && rank < 2; n *= 8)
		bad += rank ? answer(n) : ask(n);
	MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d numbers are wrong\n", sum);
	MPI_Finalize();
	return sum != 0;
}
